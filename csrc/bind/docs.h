/* The docstrings of the public functions, each headed by its text signature. */
#pragma once

#define gm_doc_gm_py_transpose                                                                                         \
    "transpose($module, x, /, axes=None, *, out=None, device=None, stage=None, stream=None)\n--\n\n"                   \
    "Reorders the axes of x into a dense array of its own.\n"
#define gm_doc_gm_py_permute_dims                                                                                      \
    "permute_dims($module, x, /, axes, *, out=None, device=None, stage=None, stream=None)\n--\n\n"                     \
    "Reorders the axes of x into a dense array of its own.\n"
#define gm_doc_gm_py_matrix_transpose                                                                                  \
    "matrix_transpose($module, x, /, *, out=None, device=None, stage=None, stream=None)\n--\n\n"                       \
    "Swaps the last two axes of x.\n"
#define gm_doc_gm_py_copy                                                                                              \
    "copy($module, x, /, *, out=None, device=None, stage=None, stream=None)\n--\n\n"                                   \
    "A dense C-order copy of any view.\n"
#define gm_doc_gm_py_set_num_threads                                                                                   \
    "set_num_threads($module, n, /)\n--\n\n"                                                                           \
    "Sets how many threads work on one call.\n"
#define gm_doc_gm_py_get_num_threads                                                                                   \
    "get_num_threads($module, /)\n--\n\n"                                                                              \
    "How many threads work on one call.\n"
#define gm_doc_gm_py_sum                                                                                               \
    "sum($module, x, /, *, axis=None, dtype=None, keepdims=False, out=None, device=None, stage=None, "                 \
    "stream=None)\n--\n\n"                                                                                             \
    "Sums x along one, several or all axes.\n"
