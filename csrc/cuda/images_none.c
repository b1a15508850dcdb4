/* A build without nvcc: no kernels. */
#include "images.h"

const gm_image gm_images[] = {{0}};
const int gm_image_count = 0;
const gm_entry gm_entries[] = {{0}};
const int gm_entry_count = 0;
const char gm_image_chips[] = "";
