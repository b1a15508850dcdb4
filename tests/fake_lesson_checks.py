"""The lessons' kernels without a GPU: run by test_run.py on the driver of fake_cuda.py."""

import lesson_cases
import numpy as np
import pytest
from fake_cuda import Driver

import gpumem

driver = Driver()


class Lent:
    """Host memory that says it is a CUDA device's."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape = array, array.shape
        plain = {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ctypes.data, False), "version": 3}
        self.__cuda_array_interface__ = {**plain, "strides": array.strides}


def placed(array: np.ndarray, shift: int) -> np.ndarray:
    """A copy that starts so many items past an aligned address."""
    room = np.zeros(array.nbytes + 64 + shift * array.itemsize, "u1")
    start = -room.ctypes.data % 64 + shift * array.itemsize
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def run(lesson, case, shift):
    options = {name: Lent(v) if isinstance(v, np.ndarray) else v for name, v in case.options.items()}
    out = placed(np.full(case.wanted.shape, 99, case.wanted.dtype), shift)
    kept = Lent(placed(case.x, shift))
    gpumem.run(lesson, case.stage, kept, out=(given := Lent(out)), **options)
    driver.run()
    del given
    return out


@pytest.mark.parametrize("dtype", lesson_cases.DTYPES)
@pytest.mark.parametrize("lesson", lesson_cases.LESSONS)
def test_stages_give_numpys_bytes(lesson, dtype):
    for case in lesson_cases.LESSONS[lesson](dtype):
        for shift in (0, 1):
            if shift and case.stage in lesson_cases.ALIGNED[lesson]:
                continue
            got = run(lesson, case, shift)
            assert got.tobytes() == np.ascontiguousarray(case.wanted).tobytes(), f"{lesson}: {case}, shift {shift}"


@pytest.mark.parametrize("lesson, stage, x, options, said", lesson_cases.REFUSED)
def test_what_a_stage_cannot_take_is_refused_by_name(lesson, stage, x, options, said):
    driver.run()
    driver.said()
    if x.size < 100 and x.flags.c_contiguous and x.base is None:
        x = placed(x, 0)
    options = {name: Lent(v) if isinstance(v, np.ndarray) else v for name, v in options.items()}
    with pytest.raises(ValueError, match=said):
        gpumem.run(lesson, stage, Lent(x), **options)
    assert not any(call.startswith("cuLaunchKernel") for call in driver.said())


def test_a_result_is_of_its_own_and_out_must_not_share_memory():
    x = placed(np.arange(64, dtype="f4"), 0)
    lent = Lent(x)
    result = gpumem.run("read", "strided", lent, stride=3)
    assert (result.shape, result.dtype, result.device) == ((22,), "float32", "cuda:0")
    total = gpumem.run("reduce", "shuffle", Lent(np.arange(5, dtype="i4")))
    assert (total.shape, total.dtype) == ((), "int64")
    with pytest.raises(ValueError, match="read/coalesced: out shares memory with x"):
        gpumem.run("read", "coalesced", lent, out=Lent(x))
    with pytest.raises(ValueError, match="out has shape"):
        gpumem.run("read", "coalesced", lent, out=Lent(np.zeros(3, "f4")))
    driver.run()


def test_a_shape_is_found_or_asked_for():
    class Bare:
        """Only an interface."""

        def __init__(self, array):
            self.__cuda_array_interface__ = Lent(array).__cuda_array_interface__

    x, out = np.arange(12, dtype="f4"), np.zeros(4, "f4")
    gpumem.run("read", "strided", Bare(x), stride=3, out=Bare(out))
    driver.run()
    assert out.tolist() == [0, 3, 6, 9]
    with pytest.raises(ValueError, match=r"index does not say its shape: pass an array .*, not <class 'list'>"):
        gpumem.run("read", "gather", Lent(x), index=[0, 1])


def test_sums_of_many_blocks_leave_no_memory_behind():
    driver.run()  # what a test before has given back
    memories = driver.memories
    out = np.zeros((), "f4")
    x = Lent(placed(np.ones(70_000, "f4"), 0))
    for stage in ("interleaved", "vectorised"):
        given = Lent(out)
        gpumem.run("reduce", stage, x, out=given)
        driver.run()
        assert out == 70_000
    assert driver.memories == memories
