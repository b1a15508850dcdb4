"""Errors come before the first byte is written, and leave everything as it was. test_bad_input.py has their texts."""

import itertools

import numpy as np
import pytest
from arrays import random_bytes, same

import gpumem
from gpumem import _core

STAGES = [stage for stage in gpumem.stages(device="cpu") if stage.lesson != "reduce"]


def shared(n):
    """A square and its upper rows, moved down by one: a temporary is needed."""
    x = random_bytes((n, n), "f4")
    return x[:-1], x[1:]


# name -> makes (function, x, out, keywords); what allocates in gpumem's own code
ALLOCATING = {
    **{
        f"{stage}, {shape}": lambda stage=stage, shape=shape: (
            getattr(gpumem, stage.lesson),
            random_bytes(shape, "f4"),
            np.full(shape[::-1] if stage.lesson == "transpose" else shape, 7, "f4"),
            {"stage": stage.name},
        )
        for stage in STAGES
        for shape in [(300, 200), (5000, 3), (2, 3, 50, 4)]
    },
    "strided copy": lambda: (
        gpumem.copy,
        random_bytes((300, 200), "V3")[:, ::2],
        np.full((300, 100), b"777", "V3"),
        {},
    ),
    "shared memory": lambda: (gpumem.copy, *shared(100), {}),
    "in place": lambda: (gpumem.transpose, x := random_bytes((200, 200), "f8"), x, {}),
    "sum": lambda: (gpumem.sum, np.ones((300, 200), "f4"), np.full(200, 7, "f4"), {"axis": 0}),
    "sum of rows": lambda: (gpumem.sum, np.ones((3000, 7), "u1"), np.full(3000, 7, "u8"), {"axis": 1}),
    "sum of all": lambda: (gpumem.sum, np.ones((1 << 20), "f2"), np.full((), 7, "f2"), {}),
    "sum into itself": lambda: (gpumem.sum, (x := np.ones((30, 30))), x[3], {"axis": 0}),
}


@pytest.fixture
def fail_allocation():
    """Fails the allocations after so many more."""
    yield _core._fail_allocation
    _core._fail_allocation(-1)


@pytest.mark.parametrize("make", ALLOCATING.values(), ids=ALLOCATING)
def test_every_allocation_may_fail(make, fail_allocation, request):
    for count in itertools.count():
        function, x, out, keywords = make()
        before, source = out.tobytes(), x.tobytes()
        fail_allocation(count)
        try:
            function(x, out=out, **keywords)
        except MemoryError:
            assert out.tobytes() == before
            assert x.tobytes() == source
            fail_allocation(-1)
        else:
            fail_allocation(-1)
            break
    again, x, expected, keywords = make()
    again(x, out=expected, **keywords)
    assert out.tobytes() == expected.tobytes()
    assert count > 0 or "transpose/streaming" not in request.node.name
    assert count < 50


@pytest.mark.parametrize("name", ["shared memory", "sum into itself"])
def test_temporaries_are_gpumems_own(name, fail_allocation):
    function, x, out, keywords = ALLOCATING[name]()
    fail_allocation(0)
    with pytest.raises(MemoryError, match="not enough memory for a temporary array, which out needs as it shares"):
        function(x, out=out, **keywords)


def test_records_survive_failing_allocations(fail_allocation):
    x = random_bytes(1000, [("a", "u1"), ("b", "f8"), ("c", "f4")])
    x["b"] = 1
    for count in itertools.count():
        fail_allocation(count)
        try:
            planes = gpumem.to_soa(x)
            back = gpumem.to_aos(planes)
        except MemoryError:
            continue
        finally:
            fail_allocation(-1)
        break
    assert count > 0
    assert all(same(planes[name], x[name].copy()) for name in x.dtype.names)
    assert back.tobytes() == x.tobytes()


class Awkward:
    """Raises where it is asked for anything."""

    def __bool__(self):
        raise RuntimeError("asked for its truth")

    def __index__(self):
        raise RuntimeError("asked for its index")

    def __str__(self):
        raise RuntimeError("asked for its name")


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda x, bad: gpumem.sum(x, keepdims=bad), "truth"),
        (lambda x, bad: gpumem.sum(x, axis=bad), "index"),
        (lambda x, bad: gpumem.sum(x, axis=(0, bad)), "index"),
        (lambda x, bad: gpumem.transpose(x, (0, bad)), "index"),
        (lambda x, bad: gpumem.copy(x, device=bad), "name"),
        (lambda x, bad: gpumem.set_num_threads(bad), "index"),
    ],
)
def test_exceptions_of_arguments_come_through(call, said):
    with pytest.raises(RuntimeError, match=f"asked for its {said}"):
        call(np.zeros((2, 3)), Awkward())


NUMBERS = "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, "
CANNOT = "bool and integers may become any number, floats floats or complex, complex only complex"


@pytest.mark.parametrize(
    "x, keywords, error, said",
    [
        (
            np.zeros(3, "M8[s]"),
            {},
            TypeError,
            rf"x has dtype datetime64\[s\]: sums are of {NUMBERS}complex64, complex128",
        ),
        (np.zeros(3, "S4"), {}, TypeError, rf"x has dtype \|S4: sums are of {NUMBERS}"),
        (np.zeros(3, [("a", "f4")]), {}, TypeError, r"x has dtype \[\('a', '<f4'\)\]: sums are of "),
        (np.zeros(3, "f4"), {"dtype": "i4"}, TypeError, f"a sum of float32 cannot be given as i4: {CANNOT}"),
        (np.zeros(3, "c8"), {"dtype": np.float64}, TypeError, "a sum of complex64 cannot be given as .*float64.*: "),
        (np.zeros(3, "i4"), {"dtype": "S3"}, TypeError, "a sum of int32 cannot be given as S3: "),
        (np.zeros(3, "i4"), {"dtype": bool}, TypeError, "a sum of int32 cannot be given as .*bool.*: "),
        (np.zeros(3, "i4"), {"axis": 1}, ValueError, "axis 1 of a 1-d array"),
        (np.zeros((3, 4)), {"axis": (0, -2)}, ValueError, "repeated axis 0"),
        (np.zeros(()), {"axis": 0}, ValueError, "axis 0 of a 0-d array"),
        (
            np.zeros(3),
            {"axis": "0"},
            TypeError,
            "axis must be None, an integer or a tuple of integers, not <class 'str'>",
        ),
        (
            np.zeros(3),
            {"axis": 0.0},
            TypeError,
            "axis must be None, an integer or a tuple of integers, not <class 'float'>",
        ),
        (
            np.zeros((3, 4)),
            {"axis": 0, "out": np.full(3, 7.0)},
            ValueError,
            r"out has shape \(3,\), the result has shape \(4,\)",
        ),
        (
            np.zeros(3, "i4"),
            {"out": np.full((), 7, "i4")},
            ValueError,
            "out has dtype int32, the result has dtype int64",
        ),
        (np.zeros(3), {"stage": "fast"}, ValueError, "stage 'fast': the CPU's stages of reduce are naive, "),
    ],
)
def test_sums_that_cannot_be(x, keywords, error, said):
    out = keywords.get("out", np.zeros(1)).copy()
    with pytest.raises(error, match=f"^{said}"):
        gpumem.sum(x, **keywords)
    assert (keywords.get("out", np.zeros(1)) == out).all()
