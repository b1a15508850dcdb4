/* What host arrays need on their way through a CUDA device, for device="cuda". */
#pragma once
#include "transfer.h"
#include "../cuda/backend.h"

/* How the host's side of a device is copied: by all cores. */
gm_host_copy gm_host_copy_of(gm_state *state);

/* Whether a view spans more than `times` the bytes of its items. */
int gm_is_loose(const gm_array *array, int64_t times);

/* A dense copy, made on the host; the caller frees it. 0, or -1 with an exception. */
int gm_gather(gm_state *state, const gm_array *src, gm_array *dense);

/* dst = src for views of one shape, as if src had been copied first. 0, or -1 with an exception. */
int gm_through_device(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src);
