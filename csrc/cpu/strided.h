/* Strided movement item by item: what no vector kernel takes. */
#pragma once
#include "../base/plan.h"

/* dst[...] = src[...] over a box of items; steps of any sign and size; one thread. */
void gm_copy_box(char *dst, const char *src, int64_t item, const gm_axis *axis, int naxes);
