"""A kernel's arguments: arrays become pointers into the memory that they own, numbers take the parameter's type."""

import struct

import numpy as np
import pytest

from gpumem.arguments import Parameter, base_of, bounds, lay_out
from gpumem.errors import UsageError
from gpumem.specs import parse

POINTER = Parameter("p", 0, 8, 8, 64, "u", False, False)


def parameters(*types):
    """u64 f32 u32 ...: laid out as a compiler does."""
    made, offset = [], 0
    for i, text in enumerate(types):
        kind, bits = text[0], int(text[1:])
        size = bits // 8
        offset = -(-offset // size) * size
        made.append(Parameter(f"p{i}", offset, size, size, bits, kind, False, False))
        offset += size
    return made, offset


def block(types, *args):
    rows, size = parameters(*types)
    return bytes(lay_out(rows, size, args).block)


@pytest.mark.parametrize(
    "kind, value, packed",
    [
        ("u32", 7, struct.pack("<I", 7)),
        ("u32", -1, b"\xff" * 4),
        ("s32", -5, struct.pack("<i", -5)),
        ("u8", 255, b"\xff"),
        ("u16", np.uint16(9), struct.pack("<H", 9)),
        ("u64", 1 << 63, struct.pack("<Q", 1 << 63)),
        ("u64", None, bytes(8)),
        ("u32", True, struct.pack("<I", 1)),
        ("f32", 1.5, struct.pack("<f", 1.5)),
        ("f32", 2, struct.pack("<f", 2.0)),
        ("f64", np.float32(0.5), struct.pack("<d", 0.5)),
        ("f16", 1.0, struct.pack("<e", 1.0)),
        ("b32", 3, struct.pack("<I", 3)),
        ("b32", 1.0, struct.pack("<f", 1.0)),
        ("u32", b"abcd", b"abcd"),
    ],
)
def test_numbers_take_the_parameters_type(kind, value, packed):
    assert block([kind], value) == packed


@pytest.mark.parametrize(
    "kind, value, error, said",
    [
        ("u32", 1 << 32, OverflowError, r"argument 0 \(u32 p0\): 4294967296 does not fit into 32 bits"),
        ("s8", -129, OverflowError, "does not fit into 8 bits"),
        ("f32", 1e39, OverflowError, "does not fit into 32 bits"),
        ("u32", 1.5, TypeError, "is an integer, and 1.5 was given"),
        ("u32", None, TypeError, "is no pointer, and None was given"),
        ("u32", "7", TypeError, "is an integer, and '7' was given"),
        ("f32", "7", TypeError, "cannot take '7'"),
        ("u32", np.zeros(3), TypeError, "is no pointer, and an array was given"),
        ("f64", np.zeros(3), TypeError, "is no pointer, and an array was given"),
        ("u32", b"abc", TypeError, "has 4 bytes, and 3 were given"),
        ("u64", np.array([object()]), TypeError, "whose items refer to objects"),
    ],
)
def test_what_does_not_fit_is_named(kind, value, error, said):
    with pytest.raises(error, match=said):
        block([kind], value)


def test_arguments_are_counted():
    with pytest.raises(TypeError, match=r"takes 2 arguments \(u64, u32\), and 1 were given"):
        block(["u64", "u32"], 1)


def test_a_struct_takes_its_bytes():
    struct_of_12 = [Parameter("s", 0, 12, 4, 8, "b", True, False)]
    assert bytes(lay_out(struct_of_12, 12, [b"abcdefghijkl"]).block) == b"abcdefghijkl"
    record = np.array((1, 2, 3), "i4,i4,i4")
    assert bytes(lay_out(struct_of_12, 12, [record[()]]).block) == record.tobytes()
    assert bytes(lay_out(struct_of_12, 12, [np.arange(3, dtype="i4")]).block) == np.arange(3, dtype="i4").tobytes()
    with pytest.raises(TypeError, match="is a struct: give its 12 bytes, not 5"):
        lay_out(struct_of_12, 12, [5])


def test_views_keep_their_place_in_their_base():
    base = np.arange(100, dtype="f4")
    layout = lay_out(*parameters("u64", "u64"), [base[10:20], base[::-1]])
    assert [buffer.size for buffer in layout.buffers] == [400]
    assert layout.pointers == [(0, 0, 40), (8, 0, 396)]


def test_each_base_is_a_buffer_and_the_order_is_that_of_the_arguments():
    arrays = [np.zeros(n, "u1") for n in (3, 5, 7)]
    layout = lay_out(*parameters("u64", "u64", "u64"), arrays)
    assert [buffer.size for buffer in layout.buffers] == [3, 5, 7]
    assert [buffer.name for buffer in layout.buffers] == ["argument 0", "argument 1", "argument 2"]
    named = lay_out(*parameters("u64", "u64"), arrays[:2], ["out", "x"])
    assert [buffer.name for buffer in named.buffers] == ["out", "x"]


def test_arrays_over_the_same_bytes_are_one_buffer():
    memory = bytearray(64)
    one, two = np.frombuffer(memory, "u1"), np.frombuffer(memory, "u1", 16, 8)
    layout = lay_out(*parameters("u64", "u64"), [two, one])
    assert [buffer.size for buffer in layout.buffers] == [64]
    assert layout.pointers == [(0, 0, 8), (8, 0, 0)]


def test_read_only_arrays_are_read_only_buffers():
    x = np.zeros(4)
    x.flags.writeable = False
    y = np.zeros(4)
    layout = lay_out(*parameters("u64", "u64"), [x, y])
    assert [buffer.read_only for buffer in layout.buffers] == [True, False]


def test_an_array_without_items_is_a_null_pointer():
    layout = lay_out(*parameters("u64"), [np.zeros(0)])
    assert (layout.pointers, layout.buffers, bytes(layout.block)) == ([], [], bytes(8))


@pytest.mark.parametrize(
    "index", [np.s_[:], np.s_[::-1], np.s_[1:3, ::2], np.s_[:, ::-3], np.s_[0], np.s_[:0]], ids=str
)
def test_bounds_are_those_of_the_items(index):
    base = np.arange(60, dtype="i2").reshape(6, 10)
    view = base[index]
    low, high = bounds(view)
    start = base.__array_interface__["data"][0]
    items = sorted(view.ravel().tolist())
    if items:
        assert ((low - start) // 2, (high - start) // 2 - 1) == (items[0], items[-1])
    assert base_of(view) is base_of(base)


@pytest.mark.parametrize(
    "text, name, value",
    [
        ("7", "", 7),
        ("0x10", "", 16),
        ("-3", "", -3),
        ("1.5", "", 1.5),
        ("n=7", "n", 7),
        ("n:u8=7", "n", np.uint8(7)),
        ("scale:f32=0.5", "scale", np.float32(0.5)),
        ("null", "", None),
    ],
)
def test_numbers_of_the_command_line(text, name, value):
    argument = parse(text)
    assert (argument.name, argument.value, type(argument.value)) == (name, value, type(value))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x:f32[2,3]", np.zeros((2, 3), "f4")),
        ("x:f32[2x3]=zeros", np.zeros((2, 3), "f4")),
        ("i32[4]=arange", np.arange(4, dtype="i4")),
        ("x:uint8[3]=ones", np.ones(3, "u1")),
        ("x:f64[2]=1.5", np.full(2, 1.5)),
        ("x:u16[]=7", np.full((), 7, "u2")),
    ],
)
def test_arrays_of_the_command_line(text, expected):
    value = parse(text).value
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    assert value.tobytes() == expected.tobytes()
    assert value.flags.writeable


@pytest.mark.parametrize("kind", ["f16", "f32", "i8", "u64", "complex64", "bool"])
def test_random_arrays_are_the_same_every_time(kind):
    one, two = (parse(f"x:{kind}[100]=random").value for _ in range(2))
    assert one.tobytes() == two.tobytes()
    assert len(np.unique(one)) > 1
    assert one.flags.writeable


def test_files_fill_arrays(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6.0))
    assert parse(f"x={path}").value.tolist() == list(range(6))
    assert parse(f"x:f32[2,3]={path}").value.dtype == np.float32
    with pytest.raises(ValueError, match=r"holds 6 items, and shape \(4,\) has 4"):
        parse(f"x:f32[4]={path}")


@pytest.mark.parametrize(
    "text, said",
    [
        ("x:f33[4]", "no type 'f33': there are f16, f32"),
        ("x:f32[4]=randm", "no filling 'randm'|is no number"),
        ("x", "'x' is no number, and no array such as"),
        ("x=/nowhere.npy", r"cannot read /nowhere\.npy"),
        ("", "argument ''"),
    ],
)
def test_what_is_no_argument_is_named(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_arrays_of_one_name_are_refused():
    """Reports, `--save` and the bytes that a launch must move know arrays by their names."""
    rows, size = parameters("u64", "u64", "u32")
    x, y = np.zeros(4, "f4"), np.zeros(8, "f4")
    with pytest.raises(UsageError, match="two arrays are called 'x'"):
        lay_out(rows, size, (x, y, 1), ("x", "x", "n"))
    assert [buffer.size for buffer in lay_out(rows, size, (x, y, 1), ("x", "y", "x")).buffers] == [16, 32]
