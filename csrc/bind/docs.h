/* The docstrings of the public functions, each headed by its text signature. Their examples run as tests, with numpy as
 * np and gpumem imported. */
#pragma once

/* What the keywords that every operation has in common mean. */
#define GM_DOC_OPTIONS                                                                                                 \
    "out: a writable array of the result's shape, dtype and device, with any strides, which is filled and returned.\n" \
    "    It may share memory with x: the result is as if x had been copied first.\n"                                   \
    "    Legacy DLPack capsules cannot say that they may be written: they are taken to be read-only.\n"                \
    "device: None or the device object of x's own library: where x is. 'cuda' or 'cuda:1' sends an array in host\n"    \
    "    memory to that device and fetches the result; 'cpu' is for arrays in host memory only.\n"                     \
    "stage: a name of gpumem.stages() for the device, or None for the fastest.\n"                                      \
    "stream: for an array on a CUDA device the stream that the work is put on: a handle as in DLPack (1 the legacy\n"  \
    "    default stream, 2 the one of this thread), or an object with __cuda_stream__. None: the current stream of\n"  \
    "    x's library where its exchange table tells it (PyTorch), else the legacy default stream, which the\n"         \
    "    producer is told.\n"

#define GM_DOC_KIND                                                                                                    \
    "x: a numpy.ndarray of any rank up to 64, any strides and any dtype whose items are plain bytes, in any byte\n"    \
    "    order, or an array in host memory or on a CUDA device that speaks DLPack or has a CUDA array interface.\n"    \
    "    Subclasses of ndarray are taken as the plain array that they hold; masked arrays are refused.\n"

#define GM_DOC_ERRORS                                                                                                  \
    "Raises, before any byte is written: TypeError for what is no array, or holds Python objects; ValueError for\n"    \
    "an out of another shape, dtype or device, a read-only one, or one whose items share memory with one another,\n"   \
    "and for an unknown stage, device or stream; BufferError for a DLPack array that cannot be taken; MemoryError;\n"  \
    "RuntimeError where CUDA cannot be used, or its driver fails.\n"

static const char gm_doc_transpose[] =
    "transpose($module, x, /, axes=None, *, out=None, device=None, stage=None, stream=None)\n--\n\n"
    "Reorders the axes of x, as numpy.transpose does, into a dense array: never a view.\n\n"
    "Axis i of the result is axis axes[i] of x; without axes their order is reversed. The bytes of the items are\n"
    "moved as they are. The result is a C-order array of x's dtype and kind (ndarray for ndarray, else an array of\n"
    "the same library).\n\n" GM_DOC_KIND
    "axes: None, or a sequence of x.ndim integers, each axis once; negative ones count from the end.\n" GM_DOC_OPTIONS
    "\nA square matrix, or a stack of them, is transposed in place by `transpose(x, axes, out=x)`.\n\n" GM_DOC_ERRORS
    "Also ValueError for axes that are repeated, out of range, or too few or too many.\n\n"
    ">>> gpumem.transpose(np.array([[1, 2, 3], [4, 5, 6]]))\n"
    "array([[1, 4],\n"
    "       [2, 5],\n"
    "       [3, 6]])\n";

static const char gm_doc_permute_dims[] =
    "permute_dims($module, x, /, axes, *, out=None, device=None, stage=None, stream=None)\n--\n\n"
    "Reorders the axes of x, as the array API's permute_dims does, into a dense array: never a view.\n\n"
    "Axis i of the result is axis axes[i] of x. Otherwise as transpose.\n\n" GM_DOC_KIND
    "axes: a sequence of x.ndim integers, each axis once; negative ones count from the end.\n" GM_DOC_OPTIONS
    "\n" GM_DOC_ERRORS "Also ValueError for axes that are repeated, out of range, or too few or too many.\n\n"
    ">>> photo = np.zeros((1080, 1920, 3), np.uint8)\n"
    ">>> gpumem.permute_dims(photo, (2, 0, 1)).shape\n"
    "(3, 1080, 1920)\n";

static const char gm_doc_matrix_transpose[] =
    "matrix_transpose($module, x, /, *, out=None, device=None, stage=None, stream=None)\n--\n\n"
    "Transposes a matrix, or each matrix of a stack, into a dense array: never a view.\n\n"
    "x of shape (..., m, n) gives a C-order array of shape (..., n, m), of x's dtype and kind.\n\n" GM_DOC_KIND
        GM_DOC_OPTIONS "\nSquare matrices are transposed in place by `matrix_transpose(x, out=x)`.\n\n" GM_DOC_ERRORS
    "Also ValueError for an array with less than two axes.\n\n"
    ">>> gpumem.matrix_transpose(np.arange(6).reshape(1, 2, 3))\n"
    "array([[[0, 3],\n"
    "        [1, 4],\n"
    "        [2, 5]]])\n";

static const char gm_doc_copy[] =
    "copy($module, x, /, *, out=None, device=None, stage=None, stream=None)\n--\n\n"
    "Copies any view into a dense C-order array of the same shape, dtype and kind.\n\n" GM_DOC_KIND GM_DOC_OPTIONS
    "\n" GM_DOC_ERRORS "\n"
    ">>> row = np.arange(8)\n"
    ">>> gpumem.copy(row[::-2])\n"
    "array([7, 5, 3, 1])\n"
    ">>> gpumem.copy(row[:-1], out=row[1:])\n"
    "array([0, 1, 2, 3, 4, 5, 6])\n";

static const char gm_doc_sum[] =
    "sum($module, x, /, *, axis=None, dtype=None, keepdims=False, out=None, device=None, stage=None, "
    "stream=None)\n--\n\n"
    "Sums x along all axes, one, or several.\n\n"
    "The result has the axes that are left, or all of them, the summed ones with length 1, with keepdims; a sum along\n"
    "all axes is a 0-d array, not a scalar. A sum of nothing is 0.\n\n"
    "Its dtype is, as in the array API, int64 for bool and signed integers, uint64 for unsigned ones, and x's own for\n"
    "floats and complex. Integers are added in 64 bits and wrap. Floats are added in float64 and rounded once: a\n"
    "float32 sum is right to the last bit but in the worst of cases. Of 16-bit floats up to four are added in float32\n"
    "first, whose rounding shows only where nearly all cancels; they do not overflow on the way. NaN and infinities\n"
    "go through. The same x gives the same bits, whatever the number of threads.\n\n"
    "x: an array as in transpose, of bool, (u)int8 to (u)int64, float16, bfloat16, float32, float64, complex64 or\n"
    "    complex128, in any byte order.\n"
    "axis: None for all axes, an integer, or a tuple of them, negative ones counted from the end; () adds nothing.\n"
    "dtype: the result's type: of any width, and of a kind that can hold the sum (no float as integer, no complex as\n"
    "    float).\n"
    "keepdims: whether summed axes stay, with length 1.\n" GM_DOC_OPTIONS "\n" GM_DOC_ERRORS
    "Also TypeError for an x or dtype of another type, ValueError for an axis out of range or repeated.\n\n"
    ">>> gpumem.sum(np.ones((2, 3), np.uint8), axis=1)\n"
    "array([3, 3], dtype=uint64)\n"
    ">>> float(gpumem.sum(np.ones(2**24 + 10, np.float32)))\n"
    "16777226.0\n";

static const char gm_doc_set_num_threads[] =
    "set_num_threads($module, n, /)\n--\n\n"
    "Sets on how many threads a call works, the calling one among them: 1 to 1024.\n\n"
    "At import it is GPUMEM_NUM_THREADS or, without that, the number of cores that the process may use. Small calls\n"
    "use fewer. Raises ValueError for another number.\n\n"
    ">>> gpumem.set_num_threads(gpumem.get_num_threads())\n";

static const char gm_doc_get_num_threads[] = "get_num_threads($module, /)\n--\n\n"
                                             "On how many threads a call works: see set_num_threads.\n\n"
                                             ">>> gpumem.get_num_threads() >= 1\n"
                                             "True\n";
