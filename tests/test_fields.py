"""to_soa and to_aos: records to planes and back, byte for byte."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arrays import random_bytes, raw, same
from dlpack_abi import Legacy, Producer, Versioned
from hypothesis import given
from hypothesis import strategies as st

import gpumem
from gpumem import _core

RECORDS = {
    "packed": np.dtype([("a", "u1"), ("b", ">f8"), ("c", "i2"), ("d", "S5")]),
    "padded": np.dtype([("a", "u1"), ("b", "f8"), ("c", "i2")], align=True),
    "equal fields": np.dtype([(name, "f4") for name in "xyz"]),
    "equal bytes": np.dtype([(name, "u1") for name in "rgba"]),
    "one field": np.dtype([("a", "V3")]),
    "out of order": np.dtype({"names": ["a", "b"], "formats": ["f4", "u2"], "offsets": [8, 3], "itemsize": 17}),
    "subarrays": np.dtype([("p", "f4", (3,)), ("m", "f8"), ("r", "u1", (2, 2))]),
    "nested": np.dtype([("at", [("x", "f4"), ("y", "f4")]), ("id", "i8")]),
    "nothing in between": np.dtype([("a", "u1"), ("none", "V0"), ("b", "u1")]),
    "titled": np.dtype([(("the first", "a"), "i4"), (("the second", "b"), "u1")]),
}
# With two axes before them and one more for the planes, as many as NumPy has.
MANY = (1,) * ((64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32) - 3)
SHAPES = [(), (0,), (1,), (7,), (1000,), (3, 5), (0, 3), (2, 3, 4), (70_000,)]


def as_bytes(x):
    """One row a record."""
    return np.frombuffer(raw(x).tobytes(), np.uint8).reshape(x.size, x.itemsize)


def bytes_of(dtype, name):
    offset = dtype.fields[name][1]
    return range(offset, offset + dtype[name].itemsize)


def field(x, name):
    """A field's bytes, from the records' bytes alone."""
    return as_bytes(x)[:, bytes_of(x.dtype, name)].tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", RECORDS.values(), ids=RECORDS)
def test_records_to_planes_and_back(dtype, shape):
    x = random_bytes(shape, dtype)
    planes = gpumem.to_soa(x)
    assert list(planes) == list(dtype.names)
    for name, plane in planes.items():
        assert type(plane) is np.ndarray
        assert (plane.shape, plane.dtype) == (shape + dtype[name].shape, dtype[name].base)
        assert plane.flags.c_contiguous
        assert plane.tobytes() == field(x, name)

    back = gpumem.to_aos(planes, dtype=dtype)
    assert (back.shape, back.dtype) == (shape, dtype)
    for name in dtype.names:
        assert field(back, name) == field(x, name)
    assert not np.delete(as_bytes(back), [i for name in dtype.names for i in bytes_of(dtype, name)], axis=1).any()


@pytest.mark.parametrize("dtype", RECORDS.values(), ids=RECORDS)
def test_strided_records_and_planes(dtype):
    x = random_bytes((60, 4), dtype)
    for view in [x[::2], x[::-1, 1], x[:, 2], x.T, x[3:4, ::-3]]:
        dense = raw(view).copy().view(dtype)
        planes = gpumem.to_soa(view)
        for name in dtype.names:
            assert planes[name].tobytes() == field(dense, name)
        reversed_planes = {name: plane[::-1] for name, plane in planes.items()}
        back = gpumem.to_aos(reversed_planes, dtype=dtype)
        for name in dtype.names:
            assert field(back, name) == field(dense[::-1], name)


def test_a_mapping_without_dtype_is_packed_in_its_order():
    planes = {"b": np.arange(3.0), "a": np.arange(6, dtype="u1").reshape(3, 2)}
    result = gpumem.to_aos(planes)
    assert result.dtype == np.dtype([("b", "f8"), ("a", "u1", (2,))])
    assert result["b"].tolist() == [0, 1, 2]
    assert result["a"].tolist() == [[0, 1], [2, 3], [4, 5]]


@given(
    st.integers(0, 70), st.integers(1, 40), st.sampled_from(["u1", "u2", "V3", "f4", "f8", "c16", "V24"]), st.booleans()
)
def test_arrays_of_n_records_of_k_items(n, k, dtype, wide):
    x = random_bytes((n, 2, k) if wide else (n, k), dtype)
    planes = gpumem.to_soa(x)
    assert same(planes, np.moveaxis(x, -1, 0))
    assert planes.flags.c_contiguous
    assert same(gpumem.to_aos(planes), x)
    assert same(gpumem.to_aos(list(planes)), x)
    assert same(gpumem.to_aos([plane[::-1] for plane in planes]), x[::-1])


@pytest.mark.parametrize("kind", [Legacy, Versioned])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (1000,), (3, 5), (0, 3), (70_000,), (2, 3, *MANY)])
@pytest.mark.parametrize("k", [1, 2, 3, 17])
def test_a_sequence_of_another_librarys_planes(kind, shape, k):
    x = random_bytes((k, *shape), "f4")
    arrays = [x[i, ...] for i in range(k)]
    planes = [Producer(plane, kind=kind) for plane in arrays]
    for sequence in (planes, tuple(planes), [planes[0], *arrays[1:]]):
        result = gpumem.to_aos(sequence)
        assert type(result) is gpumem.Array
        assert same(np.from_dlpack(result), np.moveaxis(x, 0, -1).copy())
    assert type(gpumem.to_aos([arrays[0], *planes[1:]])) is np.ndarray
    assert all(producer.deleted == producer.exported for producer in planes)


@pytest.mark.parametrize("view", [lambda x: x[::2], lambda x: x[::-1], lambda x: x.T, lambda x: x[:1].repeat(9, 0)])
def test_planes_of_another_library_may_be_strided(view):
    x = random_bytes((3, 60, 40), "i8")
    planes = [Producer(view(plane)) for plane in x]
    wanted = np.stack([view(plane) for plane in x], axis=-1)
    assert same(np.from_dlpack(gpumem.to_aos(planes)), wanted)
    mixed = [Producer(x[0]), Producer(np.asfortranarray(x[1]))]
    assert same(np.from_dlpack(gpumem.to_aos(mixed)), np.stack(x[:2], axis=-1))


def test_planes_that_lack_memory_are_given_back():
    x = random_bytes((3, 60, 40), "i8")
    for count in itertools.count():
        planes = [Producer(plane[:, ::-1]) for plane in x]
        _core._fail_allocation(count)
        try:
            result = gpumem.to_aos(planes)
        except MemoryError:
            continue
        finally:
            _core._fail_allocation(-1)
            assert all(producer.deleted == producer.exported for producer in planes)
        break
    assert count > 1
    assert same(np.from_dlpack(result), np.stack(x[:, :, ::-1], axis=-1))


def test_a_sequence_of_planes_as_named_fields():
    dtype = np.dtype([("x", "f4"), ("y", "u1")], align=True)
    planes = (np.arange(3, dtype="f4"), np.arange(3, dtype="u1"))
    assert gpumem.to_aos(planes, dtype=dtype).tolist() == [(0.0, 0), (1.0, 1), (2.0, 2)]


def test_read_only_records_and_record_arrays():
    x = np.rec.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])
    x.flags.writeable = False
    planes = gpumem.to_soa(x)
    assert planes["b"].tolist() == [2.0, 4.0]
    planes["a"].flags.writeable = False
    assert gpumem.to_aos(planes).tolist() == [(1, 2.0), (3, 4.0)]


OVERLAPPING = np.dtype({"names": ["a", "b"], "formats": ["f8", "f8"], "offsets": [0, 4]})
THREE = np.zeros(3)


@pytest.mark.parametrize("function", [gpumem.to_soa, gpumem.to_aos])
def test_an_array_known_only_by_its_dlpack(function):
    x = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(function(Producer(x)), function(x))


def test_fields_that_share_bytes_can_be_read():
    x = random_bytes(5, OVERLAPPING)
    planes = gpumem.to_soa(x)
    assert planes["a"].tobytes() == field(x, "a")
    assert planes["b"].tobytes() == field(x, "b")


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda: gpumem.to_soa([1, 2]), TypeError, "x is not an array: .*, not <class 'list'>"),
        (lambda: gpumem.to_soa(THREE), ValueError, "x is a 1-d array without fields: planes need at least 2 axes"),
        (lambda: gpumem.to_soa(np.zeros(3, [("a", "O")])), TypeError, "x has dtype .*, whose items refer to objects"),
        (lambda: gpumem.to_soa(np.zeros((3, 3), "O")), TypeError, "x has dtype object, whose items refer to objects"),
        (lambda: gpumem.to_soa(np.ma.zeros(3, [("a", "i4")])), TypeError, "x is a masked array"),
        (lambda: gpumem.to_soa(np.ndarray), TypeError, "x is not an array: .*, not <class 'type'>"),
        (lambda: gpumem.to_soa(Producer(THREE)), ValueError, "x is a 1-d array without fields: planes need at least"),
        (lambda: gpumem.to_aos(3), TypeError, "fields is not an array: .*, not <class 'int'>"),
        (lambda: gpumem.to_aos(memoryview(np.zeros((3, 3)))), TypeError, "fields is not an array: .*'memoryview'>"),
        (lambda: gpumem.to_aos({}), ValueError, "no planes: at least one is needed"),
        (lambda: gpumem.to_aos([]), ValueError, "no planes: at least one is needed"),
        (lambda: gpumem.to_aos({"a": [1]}), TypeError, "plane a is not a numpy.ndarray but <class 'list'>"),
        (lambda: gpumem.to_aos({"a": np.array([None])}), TypeError, "plane a has dtype object: only plain bytes"),
        (
            lambda: gpumem.to_aos([THREE, THREE[:2]]),
            ValueError,
            r"planes of one shape and dtype are needed: .*3.* and .*2",
        ),
        (lambda: gpumem.to_aos([THREE, 3]), TypeError, "a plane is not an array: .*, not <class 'int'>"),
        (lambda: gpumem.to_aos([THREE, Producer(THREE)], dtype="f8,f8"), TypeError, "plane 1 is not a numpy.ndarray"),
        (
            lambda: gpumem.to_aos([Producer(THREE), Producer(THREE[:2])]),
            ValueError,
            r"planes of one shape, dtype and device are needed: \(3,\) float64 in host memory and \(2,\) float64",
        ),
        (
            lambda: gpumem.to_aos([Producer(THREE), Producer(THREE.view("i8"))]),
            ValueError,
            r"planes of one shape, dtype and device are needed: \(3,\) float64 in host memory and \(3,\) int64 in host",
        ),
        (
            lambda: gpumem.to_aos([Producer(np.zeros(1), ndim=64, shape=(1,) * 64, strides=(1,) * 64)]),
            BufferError,
            "a DLPack tensor of 65 axes: 0 to 64 are taken",
        ),
        (
            lambda: gpumem.to_aos({"a": THREE, "b": THREE[:2]}),
            ValueError,
            r"plane b has shape \(2,\) and dtype float64, its ",
        ),
        (
            lambda: gpumem.to_aos({"a": THREE}, dtype=[("b", "f8")]),
            ValueError,
            r"planes \['a'\] for the fields \['b'\]",
        ),
        (
            lambda: gpumem.to_aos({"a": THREE}, dtype=[("a", "f4")]),
            ValueError,
            r"plane a has shape \(3,\) and dtype float64, .* dtype float32",
        ),
        (lambda: gpumem.to_aos({"a": THREE}, dtype="f8"), ValueError, "dtype float64 has no fields"),
        (lambda: gpumem.to_aos([THREE], dtype=[("a", "f8"), ("b", "f8")]), ValueError, "1 planes for the 2 fields of "),
        (
            lambda: gpumem.to_aos(np.zeros((2, 3)), dtype=[("a", "f8")]),
            ValueError,
            "dtype is for planes in a mapping or a sequence",
        ),
        (lambda: gpumem.to_aos({"a": THREE, "b": THREE}, dtype=OVERLAPPING), ValueError, "fields a and b share bytes"),
    ],
)
def test_what_cannot_be_taken(call, error, said):
    with pytest.raises(error, match=f"^{said}"):
        call()


FENCED = """
import sys
sys.path.insert(0, FOLDER)
import numpy as np
from arrays import fenced_planes
import gpumem
KINDS = [("u1", 4, 65536), ("u2", 7, 65536), ("f4", 2, 65536), ("f4", 3, 4096), ("f8", 2, 70001), ("c16", 7, 65536)]
for dtype, count, length in KINDS:
    for at_end in (False, True):
        planes = fenced_planes(count, length, dtype, at_end)
        for i, plane in enumerate(planes):
            plane[...] = np.arange(length) + i
        assert (gpumem.to_aos(planes) == np.stack(planes, -1)).all(), (dtype, count, length)
        assert (gpumem.to_aos(planes[::-1]) == np.stack(planes[::-1], -1)).all(), (dtype, count, length)
print("whole")
"""


@pytest.mark.parametrize("isa", [name for name, _, runs in _core._isas() if runs])
def test_nothing_is_read_between_planes(isa):
    """Planes of their own that happen to lie at equal distances: what lies between them may be no memory."""
    code = FENCED.replace("FOLDER", repr(str(Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "GPUMEM_ISA": isa}
    )
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr
