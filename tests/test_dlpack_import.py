"""DLPack arrays as inputs: what is taken, what is refused, and that each export is deleted exactly once."""

import ml_dtypes
import numpy as np
import pytest
from dlpack_abi import (
    BFLOAT,
    BOOL,
    COMPLEX,
    CUDA_HOST,
    E4M3FN,
    E5M2,
    FLOAT,
    INT,
    IS_COPIED,
    METAL,
    OPAQUE,
    READ_ONLY,
    ROCM_HOST,
    UINT,
    Hands,
    Legacy,
    Producer,
    Versioned,
    api,
    consume,
    delete,
    grows,
    items_of,
    name_of,
)
from hypothesis import given
from hypothesis import strategies as st

from gpumem import _core

KINDS = pytest.mark.parametrize("kind", [Versioned, Legacy])


def numbers(*shape, dtype="f4"):
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def taken(producer):
    """What gpumem reads from the producer, as an array of NumPy's."""
    read = np.from_dlpack(_core.copy(producer))
    assert (producer.exported, producer.deleted) == (1, 1)
    return read


def refused(producer, match, error=BufferError):
    """The error, and that nothing is left behind."""
    with pytest.raises(error, match=match):
        _core.copy(producer)
    assert producer.deleted == producer.exported
    return producer


@KINDS
def test_no_strides_mean_c_order(kind):
    x = numbers(2, 3, 4)
    assert (taken(Producer(x, kind=kind, strides=None)) == x).all()


@KINDS
def test_no_axes_need_neither_shape_nor_strides(kind):
    x = np.array(7, "i4")
    read = taken(Producer(x, kind=kind, shape=None, strides=None))
    assert read.shape == ()
    assert read == 7


@KINDS
def test_byte_offset(kind):
    x = numbers(100, dtype="u1")
    part = np.frombuffer(x, "u2", 12, offset=6).reshape(3, 4)
    assert (taken(Producer(part, kind=kind, data=x.ctypes.data, byte_offset=6)) == part).all()
    # also where the items are no multiple of their size away from anything
    odd = np.frombuffer(x.tobytes(), "<f8", 5, offset=3)
    start = np.frombuffer(x, "u1")
    assert taken(Producer(odd, kind=kind, data=start.ctypes.data, byte_offset=3)).tobytes() == odd.tobytes()


@pytest.mark.parametrize("stride", [0, -8, 1, 2**40, 2**63 - 1, -(2**63)])
def test_the_stride_of_an_axis_of_length_1_means_nothing(stride):
    x = numbers(3, 1, 4)
    assert (taken(Producer(x, strides=(4, stride, 1))) == x).all()
    assert taken(Producer(x[:1], strides=(stride, stride, 1))).tolist() == x[:1].tolist()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1, 8, 0, 128), (0, 0, 0), (2**62, 2**62, 0)], ids=str)
@pytest.mark.parametrize("stride", [0, 1, -(2**63), 2**63 - 1])
def test_without_items_there_need_not_be_memory(shape, stride):
    for data in [None, 0xDEAD]:
        producer = Producer(np.zeros(1, "f4"), ndim=len(shape), shape=shape, strides=(stride,) * len(shape), data=data)
        assert _core.permute_dims(producer, range(len(shape))[::-1]).shape == shape[::-1]
        assert producer.deleted == 1


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(-7, 7)), max_size=5),
    st.sampled_from(["u1", "i2", "f4", "f8", "c16"]),
    st.booleans(),
    st.data(),
)
def test_any_strides_in_any_order(axes, dtype, legacy, data):
    shape, strides = [n for n, _ in axes], [s for _, s in axes]
    lowest = sum((n - 1) * s for n, s in axes if s < 0)
    highest = sum((n - 1) * s for n, s in axes if s > 0)
    memory = np.random.default_rng(0).integers(0, 256, (highest - lowest + 1) * np.dtype(dtype).itemsize, "u1")
    items = memory.view(dtype)[-lowest:]
    x = np.lib.stride_tricks.as_strided(items, shape, [s * items.itemsize for s in strides])
    order = data.draw(st.permutations(range(len(axes))))
    producer = Producer(x, kind=Legacy if legacy else Versioned, strides=strides)
    result = _core.permute_dims(producer, order)
    assert np.from_dlpack(result).tobytes() == x.transpose(order).tobytes()
    assert result.shape == x.transpose(order).shape


# every type of DLPack 1.3 that is made of whole bytes
TYPES = [
    *[((INT, bits, 1), f"int{bits}") for bits in (8, 16, 32, 64)],
    *[((UINT, bits, 1), f"uint{bits}") for bits in (8, 16, 32, 64)],
    *[((FLOAT, bits, 1), f"float{bits}") for bits in (16, 32, 64, 128)],
    ((BFLOAT, 16, 1), "bfloat16"),
    *[((COMPLEX, bits, 1), f"complex{bits}") for bits in (32, 64, 128)],
    ((BOOL, 8, 1), "bool"),
    ((7, 8, 1), "float8_e3m4"),
    ((8, 8, 1), "float8_e4m3"),
    ((9, 8, 1), "float8_e4m3b11fnuz"),
    ((E4M3FN, 8, 1), "float8_e4m3fn"),
    ((11, 8, 1), "float8_e4m3fnuz"),
    ((E5M2, 8, 1), "float8_e5m2"),
    ((13, 8, 1), "float8_e5m2fnuz"),
    ((14, 8, 1), "float8_e8m0fnu"),
]


@KINDS
@pytest.mark.parametrize("dtype, name", TYPES, ids=[name for _, name in TYPES])
def test_every_type_keeps_its_code_and_its_bytes(kind, dtype, name):
    size = dtype[1] // 8
    raw = np.random.default_rng(1).integers(0, 256, (31, 33, size), "u1")
    x = raw.view(f"V{size}")[..., 0]
    result = _core.transpose(Producer(x, kind=kind, dtype=dtype))
    assert (result.dtype, result.itemsize, result.shape) == (name, size, (33, 31))
    managed = consume(result.__dlpack__(max_version=(1, 3)))
    given_back = managed.tensor.dtype
    assert (given_back.code, given_back.bits, given_back.lanes) == dtype
    assert items_of(managed) == x.T.tobytes()
    delete(managed)


@pytest.mark.parametrize(
    "dtype, name, values",
    [
        ((BFLOAT, 16, 1), "bfloat16", (4, 16, 1)),
        ((E4M3FN, 8, 1), "float8_e4m3fn", (10, 8, 1)),
        ((E5M2, 8, 1), "float8_e5m2", (12, 8, 1)),
        ((14, 8, 1), "float8_e8m0fnu", (4, 32, 1)),
    ],
)
def test_small_floats_keep_their_values(dtype, name, values):
    """D08: moved as raw bytes, the numbers are the same."""
    x = np.array(values, getattr(ml_dtypes, name)).reshape(1, 3)
    result = _core.transpose(Producer(x, dtype=dtype))
    managed = consume(result.__dlpack__(max_version=(1, 3)))
    assert np.frombuffer(items_of(managed), x.dtype).tolist() == x.T.ravel().tolist()
    delete(managed)


def test_bool_stays_bool():
    x = np.array([[True, False, True]])
    result = np.from_dlpack(_core.transpose(Producer(x)))
    assert result.dtype == np.bool_
    assert result.tolist() == x.T.tolist()


@KINDS
@pytest.mark.parametrize(
    "dtype, why",
    [
        ((FLOAT, 32, 4), "of 32 bits and 4 lanes: items of several lanes"),
        ((INT, 8, 0), "0 lanes"),
        ((UINT, 1, 1), "type uint .* of 1 bits .*smaller than a byte"),
        ((INT, 4, 1), "smaller than a byte"),
        ((15, 6, 1), "float6_e2m3fn .*smaller than a byte"),
        ((16, 6, 1), "float6_e3m2fn .*smaller than a byte"),
        ((17, 4, 1), "float4_e2m1fn .*smaller than a byte"),
        ((17, 8, 1), "float4_e2m1fn"),
        ((INT, 24, 1), "type int .* of 24 bits .*no such width"),
        ((INT, 0, 1), "smaller than a byte"),
        ((FLOAT, 8, 1), "type float .* of 8 bits .*no such width"),
        ((BFLOAT, 32, 1), "type bfloat .*no such width"),
        ((COMPLEX, 8, 1), "type complex .*no such width"),
        ((BOOL, 1, 1), "type bool .* of 1 bits"),
        ((BOOL, 32, 1), "type bool .*no such width"),
        ((E5M2, 16, 1), "type float8_e5m2 .*no such width"),
        ((OPAQUE, 64, 1), "type opaque handle .*no data"),
        ((18, 8, 1), "code 18.*not one of DLPack 1.3"),
        ((255, 8, 1), "code 255"),
    ],
)
def test_types_that_cannot_be_moved(kind, dtype, why):
    producer = refused(Producer(numbers(3), kind=kind, dtype=dtype), why)
    assert producer.deleted == 1  # by the capsule's own destructor


@pytest.mark.parametrize("device", [CUDA_HOST, ROCM_HOST])
def test_pinned_memory_is_host_memory(device):
    x = numbers(3, 4)
    assert (taken(Producer(x, device=device)) == x).all()


@KINDS
@pytest.mark.parametrize(
    "device, said",
    [
        (METAL, "device 8 .Metal.: host memory and CUDA's are taken"),
        ((10, 1), "device 10 .ROCm."),
        ((0, 0), "device 0 .unknown."),
        ((99, 0), "device 99 .unknown."),
        ((-1, 0), "device -1 .unknown."),
    ],
)
def test_other_devices(kind, device, said):
    producer = refused(Producer(numbers(3), kind=kind, device=device), said)
    assert producer.exported == 0  # asked for its device first
    producer = refused(Producer(numbers(3), kind=kind, tensor_device=device), said)
    assert producer.exported == 1  # __dlpack_device__ lied


def test_a_producer_need_not_tell_its_device_first():
    class Old:
        def __init__(self, producer):
            self.__dlpack__ = producer.__dlpack__
            self.producer = producer

        def __dlpack__(self, **options):
            return self.producer.__dlpack__(**options)

    producer = Producer(numbers(3))
    assert np.from_dlpack(_core.copy(Old(producer))).tolist() == [0, 1, 2]
    refused_one = Producer(numbers(3), device=METAL)
    with pytest.raises(BufferError, match="Metal"):
        _core.copy(Old(refused_one))
    assert refused_one.deleted == refused_one.exported == 1


@KINDS
@pytest.mark.parametrize(
    "lies, why",
    [
        ({"ndim": -1}, "-1 axes: 0 to 64"),
        ({"ndim": 65, "shape": (1,) * 65, "strides": (1,) * 65}, "65 axes: 0 to 64"),
        ({"shape": None}, "axes without a shape"),
        ({"shape": (3, -4)}, "negative length"),
        ({"shape": (-1, 0)}, "negative length"),
        ({"data": None}, "items without memory"),
        ({"shape": (2**62, 3), "strides": (0, 1)}, "more items than an address can reach"),
        ({"shape": (2**31, 2**31), "strides": None}, "more items than an address can reach"),
        ({"strides": (2**61, 1)}, "strides that lead beyond"),
        ({"strides": (2**60, 1)}, "strides that lead beyond"),
        ({"strides": (-(2**61), 1)}, "strides that lead beyond"),
        ({"strides": (-(2**63), 1)}, "strides that lead beyond"),
        ({"strides": (2**59, 2**59)}, "strides that lead beyond"),
    ],
    ids=str,
)
def test_malformed_tensors(kind, lies, why):
    refused(Producer(numbers(3, 4), kind=kind, **lies), why)


def test_64_axes_are_taken():
    """More than NumPy 1 has."""
    shape = (1,) * 62 + (2, 3)
    producer = Producer(numbers(6), ndim=64, shape=shape, strides=(7,) * 62 + (3, 1))
    result = _core.permute_dims(producer, (63, 62, *range(62)))
    assert result.shape == (3, 2) + (1,) * 62
    assert bytes(result) == numbers(2, 3).T.tobytes()


# capsules


@KINDS
def test_a_capsule_is_consumed_once(kind):
    """D03 (a): its name tells."""
    producer = Producer(numbers(3), kind=kind)
    hands = Hands(producer.capsule())
    _core.copy(hands)
    assert name_of(hands.capsule) == ("used_dltensor_versioned" if kind is Versioned else "used_dltensor")
    with pytest.raises(BufferError, match="consumed before"):
        _core.copy(hands)
    hands.capsule = None
    assert (producer.exported, producer.deleted) == (1, 1)


@KINDS
def test_a_refused_capsule_stays_unused(kind):
    """D03 (c): its owner may still give it to somebody else."""
    producer = Producer(numbers(3), kind=kind, dtype=(OPAQUE, 32, 1))
    hands = Hands(producer.capsule())
    with pytest.raises(BufferError):
        _core.copy(hands)
    assert name_of(hands.capsule) == ("dltensor_versioned" if kind is Versioned else "dltensor")
    assert producer.deleted == 0
    hands.capsule = None
    assert producer.deleted == 1


NAMELESS = api.PyCapsule_New(8, None, None)
OTHER_NAME = b"something"  # a capsule keeps its address only
STRANGER = api.PyCapsule_New(8, OTHER_NAME, None)


@pytest.mark.parametrize(
    "answer", [None, 7, "dltensor", STRANGER, NAMELESS], ids=["None", "int", "str", "stranger", "nameless"]
)
def test_what_is_no_dlpack_capsule(answer):
    with pytest.raises(TypeError, match="not a capsule named dltensor_versioned or dltensor"):
        _core.copy(Hands(answer))


@pytest.mark.parametrize("version", [(2, 0), (0, 9), (7, 7)], ids=str)
def test_another_major_version_is_deleted_unread(version):
    """D06 (d): nothing behind the deleter may be looked at. Its contents would be another error if they were."""
    producer = Producer(numbers(3), version=version, dtype=(99, 3, 7), tensor_device=METAL, ndim=-1)
    hands = Hands(producer.capsule())
    with pytest.raises(BufferError, match=rf"DLPack {version[0]}\.{version[1]}: this build understands version 1"):
        _core.copy(hands)
    assert producer.deleted == 1
    assert name_of(hands.capsule) == "used_dltensor_versioned"


@pytest.mark.parametrize("version", [(1, 0), (1, 99)], ids=str)
def test_any_minor_version_is_read(version):
    assert taken(Producer(numbers(3), version=version)).tolist() == [0, 1, 2]


class Asked:
    """Keeps how it was asked, and answers as it is told to."""

    def __init__(self, answer):
        self.calls, self.answer = [], answer

    def __dlpack__(self, *args, **options):
        self.calls.append((args, options))
        return self.answer(**options)


def test_asks_for_a_versioned_capsule_and_for_nothing_else():
    producer = Producer(numbers(3))
    asked = Asked(producer.__dlpack__)
    _core.copy(asked)
    assert asked.calls == [((), {"max_version": (1, 3)})]


@pytest.mark.parametrize("refusal", [TypeError, NotImplementedError])
def test_asks_an_old_producer_again_without_max_version(refusal):
    """D06 (c)."""
    producer = Producer(numbers(3), kind=Legacy)

    def answer(**options):
        if options:
            raise refusal("max_version")
        return producer.capsule()

    asked = Asked(answer)
    assert np.from_dlpack(_core.copy(asked)).tolist() == [0, 1, 2]
    assert asked.calls == [((), {"max_version": (1, 3)}), ((), {})]
    assert producer.deleted == 1


@pytest.mark.parametrize("error", [ValueError, BufferError, KeyboardInterrupt, AttributeError])
def test_errors_of_the_producer_pass_unchanged(error):
    def fail(**options):
        raise error("the producer's reason")

    asked = Asked(fail)
    with pytest.raises(error, match="the producer's reason"):
        _core.copy(asked)
    assert len(asked.calls) == 1


def test_a_type_error_of_the_producers_own_passes_after_the_second_try():
    def fail(**options):
        raise TypeError(f"asked with {sorted(options)}")

    with pytest.raises(TypeError, match=r"asked with \[\]"):
        _core.copy(Asked(fail))


@pytest.mark.parametrize("answer", [None, 1, (1,), (1, 0, 0), [1, 0], ("cpu", 0), (2.0, 0), (1, 1 << 99)], ids=str)
def test_a_device_that_is_none(answer):
    class Wrong(Producer):
        def __dlpack_device__(self):
            return answer

    assert refused(Wrong(numbers(3)), "integer", TypeError).exported == 0


def test_errors_of_dlpack_device_pass_unchanged():
    class Wrong(Producer):
        def __dlpack_device__(self):
            raise BufferError("spread over two devices")

    assert refused(Wrong(numbers(3)), "spread over two devices").exported == 0


def test_a_class_is_not_an_array():
    with pytest.raises(TypeError, match="not an array"):
        _core.copy(Producer)


# memory that does not tell the whole of it


@pytest.mark.parametrize(
    "name, remedy", [("requires_grad", "detach"), ("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")]
)
def test_memory_that_is_not_the_whole_array(name, remedy):
    class Lazy(Producer):
        pass

    def mark(value):
        setattr(Lazy, name, value if name == "requires_grad" else lambda self: value)

    mark(True)
    assert refused(Lazy(numbers(3)), rf"{name} of the array is set.*x\.{remedy}\(\)").exported == 0
    for harmless in [False, None, 1]:
        mark(harmless)
        assert taken(Lazy(numbers(3))).tolist() == [0, 1, 2]


# one deleter call, whatever happens


@KINDS
def test_errors_after_the_import_delete_once(kind):
    x = numbers(3, 4)
    for call, error in [
        (lambda p: _core.transpose(p, (0, 0)), ValueError),
        (lambda p: _core.transpose(p, out=np.zeros((3, 4), "f4")), ValueError),
        (lambda p: _core.transpose(p, out=np.zeros((4, 3), "f8")), ValueError),
        (lambda p: _core.transpose(p, out=7), TypeError),
        (lambda p: _core.copy(p, out=Producer(x, dtype=(OPAQUE, 32, 1))), BufferError),
    ]:
        producer = Producer(x, kind=kind)
        with pytest.raises(error):
            call(producer)
        assert (producer.exported, producer.deleted) == (1, 1)


@KINDS
@pytest.mark.parametrize("shape", [(4, 4), (300, 300)], ids=str)
def test_memory_that_runs_out_deletes_once(kind, shape):
    """Fails the first allocation, then the second, ... until the call passes."""
    for count in range(100):
        producer = Producer(numbers(*shape), kind=kind)
        _core._fail_allocation(count)
        try:
            _core.transpose(producer)
            break
        except MemoryError:
            pass
        finally:
            _core._fail_allocation(-1)
        assert (producer.exported, producer.deleted) == (1, 1)
    assert (producer.exported, producer.deleted) == (1, 1)
    assert 1 < count < 99


@KINDS
def test_a_deleter_may_be_null(kind):
    producer = Producer(numbers(2, 3), kind=kind, has_deleter=False)
    assert np.from_dlpack(_core.transpose(producer)).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert producer.deleted == 0
    with pytest.raises(BufferError):
        _core.copy(Producer(numbers(1), kind=kind, has_deleter=False, data=None))


@KINDS
def test_the_deleter_may_run_python_and_raise_nothing_into_us(kind):
    """The error is still the one of the call, though the deleter used exceptions of its own."""

    def use_exceptions():
        with pytest.raises(KeyError):
            raise KeyError("inside")

    producer = Producer(numbers(3, 4), kind=kind, on_delete=use_exceptions)
    with pytest.raises(ValueError, match="repeated axis 0"):
        _core.transpose(producer, (0, 0))
    assert producer.deleted == 1


@KINDS
@pytest.mark.parametrize("shape", [(3, 5), (700, 900)], ids=str)
def test_the_memory_lives_until_the_work_is_done(kind, shape):
    """D05: the deleter wipes it."""
    x = numbers(*shape)
    producer = Producer(x, kind=kind, on_delete=lambda: x.view("u1").fill(0xDB))
    wanted = x.T.tobytes()
    assert np.from_dlpack(_core.transpose(producer)).tobytes() == wanted
    assert x.tobytes() == b"\xdb" * x.nbytes


# out=


def test_a_writable_tensor_takes_a_result():
    x, out = numbers(2, 3), np.full((6, 4), -7, "f4")
    producer = Producer(out[::2, 1:3])
    assert _core.transpose(x, out=producer) is producer
    wanted = np.full((6, 4), -7, "f4")
    wanted[::2, 1:3] = x.T
    assert (out == wanted).all()
    assert (producer.exported, producer.deleted) == (1, 1)


@pytest.mark.parametrize(
    "options, why",
    [
        ({"flags": READ_ONLY}, "its library says so"),
        ({"flags": IS_COPIED}, "a copy of it"),
        ({"flags": READ_ONLY | IS_COPIED}, "its library says so"),
        ({"kind": Legacy}, "legacy DLPack capsules"),
    ],
)
def test_memory_that_must_not_be_written(options, why):
    """D06: read-only by its flag, a copy that its owner would not see, or of an age that had no flag."""
    x, out = numbers(2, 3), np.full((3, 2), -7, "f4")
    producer = Producer(out, **options)
    with pytest.raises(ValueError, match=f"out is read-only: .*{why}"):
        _core.transpose(x, out=producer)
    assert (out == -7).all()
    assert (producer.exported, producer.deleted) == (1, 1)
    assert (taken(Producer(x, **options)) == x).all()  # as an input, it is fine


@pytest.mark.parametrize("strides", [(0, 1), (1, 1)])
def test_an_output_whose_items_share_memory(strides):
    out = np.full(9, -7, "f4")
    producer = Producer(out.reshape(3, 3), shape=(3, 3), strides=strides)
    with pytest.raises(ValueError, match="share memory"):
        _core.copy(numbers(3, 3), out=producer)
    assert (out == -7).all()
    assert producer.deleted == 1


def test_an_output_that_is_the_input():
    x = numbers(5, 5)
    wanted = x.T.copy()
    _core.transpose(Producer(x), out=Producer(x))
    assert (x == wanted).all()


@pytest.mark.parametrize(
    "name, dtype", [("bfloat16", (BFLOAT, 16, 1)), ("float8_e4m3fn", (E4M3FN, 8, 1)), ("float8_e5m2", (E5M2, 8, 1))]
)
def test_ml_dtypes_and_dlpack_name_one_type(name, dtype):
    """NumPy arrays of types that another package adds are outputs for DLPack inputs of the type, and vice versa."""
    x = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, name))
    raw = x.view(f"u{x.itemsize}")
    out = np.zeros_like(x.T, order="C")
    assert _core.transpose(Producer(raw, dtype=dtype), out=out) is out
    assert out.tobytes() == x.T.tobytes()
    memory = np.zeros((3, 2), raw.dtype)
    _core.transpose(x, out=Producer(memory, dtype=dtype))
    assert memory.tobytes() == x.T.tobytes()
    with pytest.raises(ValueError, match=f"out has dtype float8_e8m0fnu, the result has dtype {name}"):
        _core.transpose(Producer(raw, dtype=dtype), out=np.zeros((3, 2), ml_dtypes.float8_e8m0fnu))


def test_long_double_is_no_dlpack_type():
    with pytest.raises(ValueError, match="out has dtype"):
        _core.copy(Producer(np.zeros(3, "V16"), dtype=(FLOAT, 128, 1)), out=np.zeros(3, np.longdouble))


def test_an_output_of_another_type_is_named():
    with pytest.raises(ValueError, match="out has dtype bfloat16, the result has dtype float32"):
        _core.copy(numbers(3), out=Producer(np.zeros(3, "u2"), dtype=(BFLOAT, 16, 1)))


@pytest.mark.parametrize("rounds", [10_000])
def test_rounds_without_growth(rounds):
    """Half a gigabyte would be left if a block leaked in each, 10 MB if a structure of 1 kB did."""
    x = numbers(64, 192)
    good, bad = Producer(x), Producer(x, dtype=(OPAQUE, 32, 1))

    def once():
        _core.transpose(good)
        with pytest.raises(BufferError):
            _core.transpose(bad)

    assert not grows(once, rounds, 3 << 20)
    assert good.exported == good.deleted == bad.exported == bad.deleted
