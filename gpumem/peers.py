"""Others who do the same work, where they are present: NumPy always; HPTT, OpenBLAS and PyTorch if they can be found.

A peer hands out a call without arguments that does the whole work into the given output, or None where it cannot.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import UsageError, unknown

Array = NDArray[Any]
Call = Callable[[], object]


class Peer:
    """One library. `missing` says how to get it where it is not here, and is empty where it is."""

    name = ""
    missing = ""

    def version(self) -> str:
        """Its version, or where it was found."""
        return ""

    def permute(self, x: Array, axes: Sequence[int], out: Array) -> Call | None:
        """Out = x.transpose(axes); both dense."""
        return None

    def swap(self, x: Array, axes: Sequence[int]) -> Call | None:
        """Transposes x in place, where both axes that change places are equally long."""
        return None

    def copy(self, x: Array, out: Array) -> Call | None:
        """Out = x; x of any strides, out dense."""
        return None

    def sum(self, x: Array, axis: int | None, out: Array) -> Call | None:
        """Out = the sum of x over an axis, or over everything."""
        return None

    def fresh_transpose(self, x: Array) -> str | None:
        """The statement that makes a new transposed array of the matrix `x`; for whole calls on small ones."""
        return None


class NumPy(Peer):
    """np.copyto and np.sum: one thread."""

    name = "numpy"

    def version(self) -> str:
        return np.__version__

    def permute(self, x: Array, axes: Sequence[int], out: Array) -> Call:
        view = x.transpose(axes)
        return lambda: np.copyto(out, view)

    def swap(self, x: Array, axes: Sequence[int]) -> Call:
        view = x.transpose(axes)
        return lambda: np.copyto(x, view)  # sees the overlap, and copies first

    def copy(self, x: Array, out: Array) -> Call:
        return lambda: np.copyto(out, x)

    def sum(self, x: Array, axis: int | None, out: Array) -> Call:
        return lambda: np.sum(x, axis=axis, out=out)

    def fresh_transpose(self, x: Array) -> str:
        return "ascontiguousarray(x.T)"


class SharedPlan(ctypes.Structure):
    """std::shared_ptr to an HPTT plan. The spare word makes ctypes return it as C++ does: through memory."""

    _fields_ = (("plan", ctypes.c_void_p), ("count", ctypes.c_void_p), ("spare", ctypes.c_void_p))


class Hptt(Peer):
    """HPTT in estimate mode, on as many threads as gpumem; its plan is made once, before anything is timed.

    Its C interface plans anew in every call, so the C++ functions are called by their (Itanium ABI) names. Plans are
    never freed: a benchmark makes some hundreds of them.
    """

    name = "hptt"
    missing = "set GPUMEM_HPTT to the path of libhptt.so (github.com/springer13/hptt, make avx)"
    CREATE = "_ZN4hptt11create_planEPKii{0}PK{0}S1_S1_{0}P{0}S1_NS_15SelectionMethodEiS1_b"
    EXECUTE = "_ZN4hptt9TransposeI{0}E7executeEv"
    ESTIMATE = 0
    MOST_AXES = 8  # its search for a loop order tries them all

    def __init__(self, library: ctypes.CDLL | None, path: str) -> None:
        self._library, self._path = library, path
        if library is not None and hasattr(library, self.CREATE.format("f")):
            self.missing = ""

    def version(self) -> str:
        return self._path

    def permute(self, x: Array, axes: Sequence[int], out: Array) -> Call | None:
        letter = {"f4": "f", "f8": "d"}.get(x.dtype.str[1:])
        if self.missing or letter is None or not x.dtype.isnative or x.ndim > self.MOST_AXES:
            return None
        real = ctypes.c_float if letter == "f" else ctypes.c_double
        create = getattr(self._library, self.CREATE.format(letter))
        execute = getattr(self._library, self.EXECUTE.format(letter))
        create.restype, execute.restype = SharedPlan, None
        perm, sizes = (ctypes.c_int * x.ndim)(*axes), (ctypes.c_int * x.ndim)(*x.shape)
        source, target = ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        threads, row_major = ctypes.c_int(_core.get_num_threads()), ctypes.c_bool(True)
        made = create(
            *(perm, ctypes.c_int(x.ndim), real(1), source, sizes, None, real(0), target, None),
            *(ctypes.c_int(self.ESTIMATE), threads, None, row_major),
        )
        plan = ctypes.c_void_p(made.plan)
        return lambda: execute(plan)


class OpenBlas(Peer):
    """OpenBLAS's out-of-place transposition of float32 and float64 matrices: one thread."""

    name = "openblas"
    missing = "set GPUMEM_OPENBLAS to the path of libopenblas.so"
    ROW_MAJOR, TRANS = 101, 112

    def __init__(self, library: ctypes.CDLL | None, path: str) -> None:
        self._library, self._path = library, path
        # NumPy's wheels carry one whose names are decorated and whose integers are 64 bits wide.
        self._pattern = "cblas_{}omatcopy"
        self._int: Callable[[int], Any] = ctypes.c_int
        if library is not None and hasattr(library, "scipy_cblas_somatcopy64_"):
            self._pattern, self._int = "scipy_cblas_{}omatcopy64_", ctypes.c_int64
        if library is not None and hasattr(library, self._pattern.format("s")):
            self.missing = ""

    def version(self) -> str:
        return self._path

    def permute(self, x: Array, axes: Sequence[int], out: Array) -> Call | None:
        letter = {"f4": "s", "f8": "d"}.get(x.dtype.str[1:])
        if self.missing or letter is None or not x.dtype.isnative or tuple(axes) != (1, 0):
            return None
        real = ctypes.c_float if letter == "s" else ctypes.c_double
        function = getattr(self._library, self._pattern.format(letter))
        function.restype = None
        rows, cols = map(self._int, x.shape)
        order, trans, one = ctypes.c_int(self.ROW_MAJOR), ctypes.c_int(self.TRANS), real(1)
        source, target = ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        return lambda: function(order, trans, rows, cols, one, source, cols, target, rows)


class Torch(Peer):
    """PyTorch on the CPU, with its own number of threads."""

    name = "torch"
    missing = "pip install torch"

    def __init__(self) -> None:
        if importlib.util.find_spec("torch") is None:
            return
        import torch

        self._torch: Any = torch
        self.missing = ""

    def version(self) -> str:
        return str(self._torch.__version__)

    def _tensor(self, x: Array) -> Any:
        try:
            return self._torch.from_numpy(x)
        except (TypeError, ValueError):
            return None

    def permute(self, x: Array, axes: Sequence[int], out: Array) -> Call | None:
        source, target = self._tensor(x), self._tensor(out)
        if source is None:
            return None
        view = source.permute(*axes)
        return lambda: target.copy_(view)

    def swap(self, x: Array, axes: Sequence[int]) -> Call | None:
        tensor = self._tensor(x)
        return None if tensor is None else lambda: tensor.copy_(tensor.permute(*axes).contiguous())

    def copy(self, x: Array, out: Array) -> Call | None:
        source, target = self._tensor(x), self._tensor(out)
        return None if source is None else lambda: target.copy_(source)

    def sum(self, x: Array, axis: int | None, out: Array) -> Call | None:
        source = self._tensor(x)
        return None if source is None else lambda: self._torch.sum(source, dim=axis)


def find_library(variable: str, name: str, more: Sequence[str] = ()) -> tuple[ctypes.CDLL | None, str]:
    """The shared library named by an environment variable, else the loader's, else one of `more`."""
    import ctypes.util

    asked = os.environ.get(variable)
    for path in [asked] if asked else [ctypes.util.find_library(name), *more]:
        try:
            if path:
                return ctypes.CDLL(path), path
        except OSError as error:
            if asked:
                raise UsageError(f"{variable}={asked}: {error}") from None
    return None, ""


def make(name: str) -> Peer:
    """The peer of that name."""
    if name == "hptt":
        return Hptt(*find_library("GPUMEM_HPTT", "hptt"))
    if name == "openblas":
        bundled = sorted(map(str, Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*.so*")))
        return OpenBlas(*find_library("GPUMEM_OPENBLAS", "openblas", bundled))
    if name == "torch":
        return Torch()
    return NumPy()


NAMES = ("numpy", "hptt", "openblas", "torch")


@cache
def peer(name: str) -> Peer:
    """The peer of that name, found once."""
    return make(name)


def present(
    names: Sequence[str] | None, known: Sequence[str] = NAMES, find: Callable[[str], Peer] = peer
) -> list[Peer]:
    """The peers asked for, or every one that is here (None). Raises UsageError where one asked for is missing."""
    if names is None:
        return [p for p in map(find, known) if not p.missing]
    found = []
    for name in names:
        if name not in known:
            raise unknown("peer", name, known)
        found.append(find(name))
        if found[-1].missing:
            raise UsageError(f"peer {name!r} is not here: {found[-1].missing}")
    return found
