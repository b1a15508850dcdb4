/* Movement of host arrays through a CUDA device, for device="cuda". */
#pragma once
#include "transfer.h"

/* dst = src for views of one shape, as if src had been copied first. 0, or -1 with an exception. */
int gm_through_device(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src);
