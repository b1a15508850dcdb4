/* CUDA streams as callers name them, and their order among one another. A stream is the driver's handle; NULL says that
 * none is known, the legacy default stream is GM_LEGACY_STREAM. */
#pragma once
#include "state.h"
#include "../cuda/backend.h"
#include <dlpack/dlpack.h>

/* A driver's handle, whose 0 is the legacy default stream. */
static inline void *gm_stream_of_handle(void *handle)
{
    return handle ? handle : GM_LEGACY_STREAM;
}

/* stream=: None, a handle as in DLPack (1 the legacy default stream, 2 the one of this thread; 0 and -1 name none), or
 * an object with __cuda_stream__. *stream is NULL for None. 0, or -1 with an exception. */
int gm_stream_from(const gm_state *state, PyObject *object, void **stream);

/* The stream that a library works on now. 0, or -1 with an exception. */
int gm_stream_of_table(const DLPackExchangeAPI *api, int device, void **stream);

/* Makes what comes on `later` wait for what is on `first`. 0, or -1 with an exception. */
int gm_stream_order(int device, void *first, void *later);
/* The same where no exception can be raised: if there is no other way, by waiting. */
void gm_stream_join(int device, void *first, void *later);
