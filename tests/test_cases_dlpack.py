"""Inputs on which well-known libraries crashed or went wrong when they took arrays from one another.

What this file has besides test_dlpack_*.py are real capsules (NumPy's) and the numbers of the reports.
"""

import ml_dtypes
import numpy as np
import pytest
from dlpack_abi import (
    BFLOAT,
    BOOL,
    E4M3FN,
    E5M2,
    UINT,
    Hands,
    Legacy,
    Producer,
    Versioned,
    consume,
    delete,
    grows,
    items_of,
    name_of,
)

import gpumem
from gpumem import _core


class FromNumPy:
    """An array of another library, whose capsules NumPy makes."""

    def __init__(self, array, *, knows_versions=True):
        self.array, self.knows_versions = array, knows_versions

    def __dlpack__(self, **options):
        if options and not self.knows_versions:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {next(iter(options))!r}")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


versioned_numpy = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="this NumPy exports legacy capsules only"
)


@pytest.mark.parametrize("kind", [Versioned, Legacy])
def test_strides_null(kind):
    """See cupy 2095, DALI 6013, numpy 29872: a crash, or an array that is not contiguous."""
    x = np.arange(24, dtype="f4").reshape(2, 3, 4)
    read = np.from_dlpack(gpumem.copy(Producer(x, kind=kind, strides=None)))
    assert read.strides == (48, 16, 4)
    assert read.ravel().tolist() == list(range(24))


def test_exported_and_dropped():
    """See pytorch 9297: the capsule's own destructor must delete."""
    array = gpumem.copy(Producer(np.zeros((300, 300))))
    assert not grows(array.__dlpack__, 10_000, 300_000)  # 64 bytes a leaked structure
    del array
    x = np.zeros((300, 300))
    assert not grows(lambda: gpumem.copy(Producer(x)).__dlpack__(max_version=(1, 3)), 500, 2 << 20)  # 720 kB a block


def test_one_capsule_twice():
    """See dlpack 51, pytorch 56789: freed twice."""
    producer = Producer(np.arange(3.0))
    hands = Hands(producer.capsule())
    gpumem.copy(hands)
    for _ in range(3):
        with pytest.raises(BufferError, match="consumed before"):
            gpumem.transpose(hands)
    hands.capsule = None
    assert producer.deleted == 1


def test_a_temporary_lives_until_the_work_is_done():
    """See cutile-python 88: the exporter went while arguments were still being prepared."""

    def make():
        memory = np.arange(3000.0).reshape(50, 60)
        return Producer(memory, on_delete=lambda: memory.view("u1").fill(0xDB))

    assert (np.from_dlpack(gpumem.transpose(make())) == np.arange(3000.0).reshape(50, 60).T).all()
    out = np.zeros((60, 50))
    gpumem.transpose(make(), out=out)
    assert (out == np.arange(3000.0).reshape(50, 60).T).all()


@versioned_numpy
def test_read_only_numpy_memory():
    """See numpy 20742, dpctl 1755: read-only lost on the way, or refused although nobody writes."""
    x = np.arange(6, dtype="f4").reshape(2, 3)
    x.flags.writeable = False
    assert np.from_dlpack(gpumem.transpose(FromNumPy(x))).tolist() == x.T.tolist()
    before = x.tobytes()
    with pytest.raises(ValueError, match="out is read-only: its library says so"):
        gpumem.copy(np.ones((2, 3), "f4"), out=FromNumPy(x))
    assert x.tobytes() == before
    # NumPy's own word for a producer that cannot say it is read-only
    with pytest.raises(BufferError, match="readonly"):
        gpumem.copy(FromNumPy(x, knows_versions=False))


@versioned_numpy
def test_writable_numpy_memory():
    """See numpy 28599, jax 40789: everything read-only."""
    x = np.zeros((3, 2), "f4")
    gpumem.transpose(np.ones((2, 3), "f4"), out=FromNumPy(x[::-1]))
    assert (x == 1).all()


def test_a_producer_that_does_not_know_max_version():
    """See array-api 191: BufferError although it could. It is read, and as NumPy has it, not written."""
    x = np.arange(6, dtype="f4").reshape(2, 3)
    assert np.from_dlpack(gpumem.transpose(FromNumPy(x, knows_versions=False))).tolist() == x.T.tolist()
    assert not np.from_dlpack(FromNumPy(x, knows_versions=False)).flags.writeable
    with pytest.raises(ValueError, match=r"out is read-only: .*legacy"):
        gpumem.copy(x, out=FromNumPy(x, knows_versions=False))


def test_bool_is_not_uint8():
    """See warp 1619, pytorch 94463, jax 4719."""
    x = np.array([[True, False], [True, True]])
    result = gpumem.transpose(FromNumPy(x))
    assert result.dtype == "bool"
    assert np.from_dlpack(result).dtype == np.bool_
    with pytest.raises(ValueError, match="out has dtype bool, the result has dtype uint8"):
        gpumem.copy(FromNumPy(x.view("u1")), out=FromNumPy(x))


@pytest.mark.parametrize(
    "dtype, name",
    [
        ((BOOL, 8, 1), "bool"),
        ((BFLOAT, 16, 1), "bfloat16"),
        ((E4M3FN, 8, 1), "float8_e4m3fn"),
        ((E5M2, 8, 1), "float8_e5m2"),
    ],
)
@pytest.mark.parametrize("shape", [(6, 8, 1), (4, 16, 1), (10, 8, 1), (12, 8, 1), (1, 1, 1), (2, 8, 1), (4, 32, 1)])
def test_codes_and_bytes_are_kept(dtype, name, shape):
    """See dlpack 75, cupy 9670, cudf 5353."""
    kind = np.dtype(bool) if name == "bool" else np.dtype(getattr(ml_dtypes, name))
    x = (
        np.random.default_rng(0)
        .integers(0, 2 if name == "bool" else 256, (*shape, kind.itemsize), "u1")
        .view(kind)[..., 0]
    )
    result = gpumem.permute_dims(Producer(x, dtype=dtype), (2, 1, 0))
    managed = consume(result.__dlpack__(max_version=(1, 1)))
    assert (managed.tensor.dtype.code, managed.tensor.dtype.bits, managed.tensor.dtype.lanes) == dtype
    assert items_of(managed) == x.transpose(2, 1, 0).tobytes()
    delete(managed)


@pytest.mark.parametrize("dtype", [(UINT, 1, 1), (BOOL, 1, 1), (BFLOAT, 8, 1), (E4M3FN, 4, 1), (E5M2, 16, 1)], ids=str)
def test_bits_that_do_not_fit_the_code(dtype):
    with pytest.raises(BufferError, match=r"smaller than a byte|no such width"):
        gpumem.copy(Producer(np.zeros(8, "u1"), dtype=dtype))


@pytest.mark.parametrize("stream", [-1, 0, 1, 2, 12345])
def test_streams_are_for_other_devices(stream):
    """See array-api 974, PaddlePaddle 76840: on the CPU there is None, and anything else is a mistake."""
    array = gpumem.copy(Producer(np.zeros(3)))
    assert name_of(array.__dlpack__(stream=None)) == "dltensor"
    with pytest.raises(ValueError, match=f"stream {stream}: the CPU has no streams, pass None"):
        array.__dlpack__(stream=stream, max_version=(1, 3))
    with pytest.raises(ValueError, match="the CPU has no streams"):
        gpumem.copy(Producer(np.zeros(3)), stream=stream)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1, 8, 0, 128), (0, 0, 0)], ids=str)
def test_zero_size_arrays_in_and_out(shape):
    """See onnxruntime 27450, triton 6960: "not contiguous"."""
    x = np.zeros(shape, "f4")
    for producer in (FromNumPy(x), Producer(x, data=None, strides=shape)):
        result = gpumem.transpose(producer)
        assert np.from_dlpack(result).shape == shape[::-1]
        assert np.from_dlpack(result).flags.c_contiguous
    assert np.from_dlpack(gpumem.sum(Producer(x, data=None), axis=0)).tolist() == x.sum(0).tolist()


@pytest.mark.parametrize(
    "x",
    [
        np.arange(200.0).reshape(1, 10, 20)[::-1],
        np.arange(120.0).reshape(1, 2, 3, 4, 5).transpose(1, 0, 2, 3, 4),
        np.arange(7.0).reshape(7, 1, 1),
    ],
    ids=["reversed", "moved", "column"],
)
def test_strides_of_axes_of_length_1(x):
    """See pytorch 85558, 144711, 107026: NumPy exports them as they are."""
    read = np.from_dlpack(gpumem.copy(FromNumPy(x)))
    assert (read == x).all()
    assert read.strides == np.empty(x.shape).strides
    assert (np.from_dlpack(gpumem.transpose(FromNumPy(x))) == x.T).all()


def test_broadcast_memory_is_read_and_not_written():
    """See cupy 3095: 996 items beyond the end were read. Here only 4 bytes are there to read."""
    one = np.array([5.0], "f4")
    wide = np.lib.stride_tricks.as_strided(one, (1000,), (0,))
    assert (np.from_dlpack(gpumem.copy(FromNumPy(wide))) == 5).all()
    assert np.from_dlpack(gpumem.sum(FromNumPy(wide))) == 5000
    with pytest.raises(ValueError, match="share memory"):
        gpumem.copy(np.zeros(1000, "f4"), out=Producer(one, shape=(1000,), strides=(0,), ndim=1))
    assert one == 5


def test_the_private_module_has_the_public_type():
    assert type(gpumem.copy(Producer(np.zeros(3)))) is _core.Array
