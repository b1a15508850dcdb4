/* The names that imports and results look up, made once: a name made anew would cost as much as the lookup. */
#pragma once
#include "python.h"

#define GM_DLPACK_NAMES(NAME)                                                                                          \
    NAME(dlpack, "__dlpack__")                                                                                         \
    NAME(device, "__dlpack_device__")                                                                                  \
    NAME(exchange_api, "__dlpack_c_exchange_api__")                                                                    \
    NAME(stream, "stream")                                                                                             \
    NAME(max_version, "max_version")                                                                                   \
    NAME(cuda_interface, "__cuda_array_interface__")                                                                   \
    NAME(cuda_stream, "__cuda_stream__")                                                                               \
    NAME(array_namespace, "__array_namespace__")                                                                       \
    NAME(from_dlpack, "from_dlpack")                                                                                   \
    NAME(mro, "__mro__")                                                                                               \
    NAME(module, "__module__")                                                                                         \
    NAME(requires_grad, "requires_grad")                                                                               \
    NAME(is_conj, "is_conj")                                                                                           \
    NAME(is_neg, "is_neg")

typedef struct gm_dlpack_names {
#define NAME(field, text) PyObject *field;
    GM_DLPACK_NAMES(NAME)
#undef NAME
} gm_dlpack_names;
