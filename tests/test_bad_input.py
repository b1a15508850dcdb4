"""Bad input: each kind has its own exception and its own words, and nothing has been written when it is raised."""

import ctypes
import os
import re
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import gpumem

X = np.arange(6, dtype="i4").reshape(2, 3)

NOT_ARRAYS = [
    [1, 2],
    (1.0,),
    3,
    2.5,
    1j,
    "text",
    b"bytes",
    bytearray(8),
    memoryview(b"12"),
    None,
    range(4),
    {},
    object(),
]
MOVES = {
    "transpose": gpumem.transpose,
    "matrix_transpose": gpumem.matrix_transpose,
    "permute_dims": lambda x, **options: gpumem.permute_dims(x, tuple(range(np.ndim(x)))[::-1], **options),
    "copy": gpumem.copy,
}

moves = pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
moves_by_shape = pytest.mark.parametrize("move", [gpumem.transpose, gpumem.copy])


def words(text):
    """A regular expression for the whole message."""
    return f"^{re.escape(text)}$"


@moves
@pytest.mark.parametrize("thing", NOT_ARRAYS, ids=lambda thing: type(thing).__name__)
def test_not_an_array(move, thing):
    with pytest.raises(TypeError, match=r"^x is not an array: .*__dlpack__, not " + re.escape(repr(type(thing)))):
        move(thing)


@moves
def test_out_that_is_not_an_array(move):
    with pytest.raises(TypeError, match=r"^out is not an array: "):
        move(X, out=[[0, 0]])


@moves
@pytest.mark.parametrize(
    "dtype, said",
    [("O", "object"), ([("a", "i4"), ("b", "O")], "b"), ([("a", [("b", "O", (2,))])], "b")],
    ids=["object", "field", "nested field"],
)
def test_items_that_refer_to_objects(move, dtype, said):
    with pytest.raises(TypeError, match=rf"^x has dtype .*{said}.*, whose items refer to objects"):
        move(np.zeros((2, 3), dtype))


@moves
def test_masked_arrays(move):
    with pytest.raises(TypeError, match=r"^x is a masked array, whose mask would be lost: "):
        move(np.ma.masked_equal(X, 3))


@pytest.mark.parametrize("function", [gpumem.transpose, gpumem.permute_dims])
@pytest.mark.parametrize(
    "axes, error, said",
    [
        ((0, 0), ValueError, "repeated axis 0"),
        ((0, -2), ValueError, "repeated axis 0"),
        ((0, 2), ValueError, "axis 2 of a 2-d array"),
        ((-3, 0), ValueError, "axis -3 of a 2-d array"),
        ((0, 2**70), ValueError, f"axis {2**70} of a 2-d array"),
        ((-(2**63) - 1, 0), ValueError, f"axis {-(2**63) - 1} of a 2-d array"),
        ((0,), ValueError, "1 axis for a 2-d array"),
        ((), ValueError, "0 axes for a 2-d array"),
        ((0, 1, 2), ValueError, "3 axes for a 2-d array"),
        ("01", TypeError, "axes must be a sequence of integers, not <class 'str'>"),
        (1, TypeError, "axes must be a sequence of integers, not <class 'int'>"),
        ({0, 1}, TypeError, "axes must be a sequence of integers, not <class 'set'>"),
        ((0, 1.0), TypeError, "'float' object cannot be interpreted as an integer"),
        ((0, None), TypeError, "'NoneType' object cannot be interpreted as an integer"),
    ],
    ids=str,
)
def test_axes(function, axes, error, said):
    out = np.full((3, 2), 7, "i4")
    with pytest.raises(error, match=words(said)):
        function(X, axes, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize("ndim", [0, 1])
def test_matrix_transpose_needs_a_matrix(ndim):
    with pytest.raises(
        ValueError, match=words(f"matrix_transpose swaps the last two axes: a {ndim}-d array has too few")
    ):
        gpumem.matrix_transpose(np.zeros((3,) * ndim))


@moves
@pytest.mark.parametrize("shape", [(3,), (6,), (1, 3, 2), (2, 2), (), (0, 2)], ids=str)
def test_out_of_another_shape(move, shape):
    out = np.full(shape, 7, "i4")
    wanted = (2, 3) if move is gpumem.copy else (3, 2)
    with pytest.raises(ValueError, match=words(f"out has shape {shape}, the result has shape {wanted}")):
        move(X, out=out)
    assert (out == 7).all()


@moves
@pytest.mark.parametrize("dtype", ["u4", "f4", "i8", ">i4", "V4", "M8[s]"])
def test_out_of_another_dtype(move, dtype):
    out = np.zeros((2, 3) if move is gpumem.copy else (3, 2), dtype)
    said = f"out has dtype {out.dtype}, the result has dtype int32"
    with pytest.raises(ValueError, match=words(said)):
        move(X, out=out)
    assert not out.tobytes().strip(b"\0")


@moves
def test_read_only_out(move):
    out = np.full((2, 3) if move is gpumem.copy else (3, 2), 7, "i4")
    out.flags.writeable = False
    with pytest.raises(ValueError, match=words("out is read-only: its writeable flag is off")):
        move(X, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize("strides", [(4, 0), (0, 4), (4, 4), (8, 2), (2, 4)], ids=str)
def test_out_whose_items_share_memory(strides):
    memory = np.full(100, 7, "i4")
    with pytest.raises(ValueError, match=words("out has items that share memory with one another")):
        gpumem.copy(X, out=as_strided(memory, X.shape, strides))
    assert (memory == 7).all()


DEVICES = "there are None (where the data is), 'cpu', 'cuda' (or 'cuda:1', ...) and 'sim'"


@moves
@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"device": "gpu"}, ValueError, f"device 'gpu': {DEVICES}"),
        ({"device": 0}, ValueError, f"device 0: {DEVICES}"),
        ({"device": "cuda:x"}, ValueError, f"device 'cuda:x': {DEVICES}"),
        ({"device": "cuda1"}, ValueError, f"device 'cuda1': {DEVICES}"),
        ({"device": "sim", "stream": 1}, ValueError, "stream 1: the CPU has no streams, pass None"),
        ({"stream": 1}, ValueError, "stream 1: the CPU has no streams, pass None"),
        ({"stream": "s"}, ValueError, "stream 's': the CPU has no streams, pass None"),
    ],
    ids=str,
)
def test_places(move, options, error, said):
    out = np.full((2, 3) if move is gpumem.copy else (3, 2), 7, "i4")
    with pytest.raises(error, match=words(said)):
        move(X, out=out, **options)
    assert (out == 7).all()


@pytest.mark.parametrize("function, lesson", [(gpumem.transpose, "transpose"), (gpumem.copy, "copy")])
@pytest.mark.parametrize("stage", ["fast", "", "NAIVE", 3, b"naive", "naive\0"], ids=repr)
def test_an_unknown_stage_is_answered_with_the_ones_there_are(function, lesson, stage):
    with pytest.raises(ValueError, match=r"^stage .*: the CPU's stages of ") as raised:
        function(X, stage=stage)
    listed = str(raised.value).rsplit(" are ", 1)[1].split(", ")
    assert listed == [row.name for row in gpumem.stages(lesson, device="cpu")]


@moves
@pytest.mark.parametrize(
    "arguments, options, said",
    [
        ((), {}, "needs the argument x"),
        ((X, None, None, None), {}, "takes at most"),
        ((X,), {"order": "C"}, "has no keyword argument 'order'"),
        ((), {"x": X}, "has no keyword argument 'x'"),
    ],
    ids=["no array", "too many", "unknown keyword", "positional only"],
)
def test_calls(move, arguments, options, said):
    function = gpumem.permute_dims if move is MOVES["permute_dims"] else move
    with pytest.raises(TypeError, match=said):
        function(*arguments, **options)


def test_an_axis_given_twice():
    with pytest.raises(TypeError, match=words("transpose() got the argument axes twice")):
        gpumem.transpose(X, (1, 0), axes=(1, 0))


class Claims:
    """A producer of DLPack whose one byte claims to be an array of any shape, by strides of 0."""

    def __init__(self, shape):
        self.byte = ctypes.c_uint8(7)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))()
        # DLManagedTensor: data, device (type, id), ndim, dtype (code, bits, lanes), shape, strides, byte_offset,
        # manager_ctx, deleter
        self.memory = ctypes.create_string_buffer(
            struct.pack(
                "@P2ii2BH2PQ2P",
                ctypes.addressof(self.byte),
                *(1, 0),
                len(shape),
                *(1, 8, 1),
                *(ctypes.addressof(self.shape), ctypes.addressof(self.strides)),
                0,
                *(0, 0),
            )
        )

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.memory), b"dltensor", None)


@moves_by_shape
@pytest.mark.parametrize("shape", [(2**40, 2**40), (2**62, 2), (2**31, 2**31, 2), (2**63 - 1, 3)], ids=str)
def test_sizes_that_overflow(move, shape):
    """NumPy makes no such array, other producers may."""
    with pytest.raises(BufferError, match=words("a malformed DLPack tensor: more items than an address can reach")):
        move(Claims(shape))


def test_a_result_that_overflows():
    x = as_strided(np.zeros(1, "u1"), (2**61, 1), (0, 0))
    said = f"an array of shape ({2**61},) with items of 8 bytes is larger than any memory"
    with pytest.raises(ValueError, match=words(said)):
        gpumem.sum(x, axis=1)


@moves_by_shape
@pytest.mark.parametrize("shape", [(2**62,), (2**31, 2**31), (2**45, 1, 2)], ids=str)
def test_sizes_that_no_machine_has(move, shape):
    with pytest.raises(MemoryError):
        move(as_strided(np.zeros(1, "u1"), shape, (0,) * len(shape)))


def run_with_little_memory(code):
    """Runs `code` in a Python of its own whose address space has `spare` bytes left after its imports."""
    prologue = """
        import resource, sys
        import numpy as np
        import gpumem

        def leave(spare):
            with open("/proc/self/statm") as statm:
                used = int(statm.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))

        def leave_all():
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)

        def expect(error, said, call):
            try:
                call()
            except error as raised:
                assert said in str(raised), raised
            else:
                sys.exit(f"no {error.__name__}")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(prologue) + textwrap.dedent(code)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


no_limit_under_sanitizers = pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer reserves terabytes of address space"
)


@no_limit_under_sanitizers
def test_no_memory_for_the_result():
    run_with_little_memory("""
        x = np.arange(100 << 20, dtype="u1").reshape(1024, -1)
        leave(50 << 20)
        for function in (gpumem.transpose, gpumem.copy, gpumem.matrix_transpose):
            expect(MemoryError, "", lambda: function(x))
        expect(MemoryError, "", lambda: gpumem.sum(x, axis=()))
        small = x[:64, :64]
        assert gpumem.transpose(small).tobytes() == small.T.tobytes()
    """)


@no_limit_under_sanitizers
def test_no_memory_for_the_copy_that_an_overlap_needs():
    run_with_little_memory("""
        memory = np.arange(100 << 20, dtype="u1")
        x, out = memory[:-1].reshape(3, -1), memory[1:].reshape(-1, 3)
        before = memory[:10].copy(), memory[-10:].copy(), memory.sum()
        leave(50 << 20)
        expect(MemoryError, "not enough memory for a temporary array, which out needs as it shares memory with x",
               lambda: gpumem.transpose(x, out=out))
        leave_all()
        assert (memory[:10] == before[0]).all() and (memory[-10:] == before[1]).all() and memory.sum() == before[2]
    """)


@no_limit_under_sanitizers
def test_no_memory_for_threads_leaves_the_work_to_the_caller():
    run_with_little_memory("""
        gpumem.set_num_threads(2)
        x = np.arange(4 << 20, dtype="u4").reshape(2048, -1)
        out, expected = np.zeros_like(x.T, order="C"), x.T.copy()
        leave(7 << 20)  # less than a stack for the second thread
        assert gpumem.transpose(x, out=out) is out
        leave_all()
        assert (out == expected).all()
    """)
