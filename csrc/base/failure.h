/* What went wrong, in words, where a status alone cannot say it: a driver's errors carry numbers and names. */
#pragma once
#include "status.h"

typedef struct gm_failure {
    gm_status status;
    char text[1000];
} gm_failure;
