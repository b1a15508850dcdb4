"""cuTENSOR's permutation of arrays on a CUDA device, by its C interface (2.x) and without a binding of it."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from typing import Any

from .peers import Call, Peer, find_library

# cudaDataType_t, the name of the arithmetic, and the C type of the scale: cuTENSOR multiplies what it moves, and takes
# no integers. Those of 2 bytes it can move as the float16 numbers that the same bits are.
KINDS: dict[str, tuple[int, str, type[Any]]] = {
    "torch.float16": (2, "32F", ctypes.c_float),
    "torch.int16": (2, "32F", ctypes.c_float),
    "torch.bfloat16": (14, "32F", ctypes.c_float),
    "torch.float32": (0, "32F", ctypes.c_float),
    "torch.float64": (1, "64F", ctypes.c_double),
    "torch.complex64": (4, "32F", ctypes.c_float),
    "torch.complex128": (5, "64F", ctypes.c_double),
}
IDENTITY = 1  # CUTENSOR_OP_IDENTITY
MODEL, NO_JIT = -1, 0  # CUTENSOR_ALGO_DEFAULT, CUTENSOR_JIT_MODE_NONE
NOT_SUPPORTED = 15  # CUTENSOR_STATUS_NOT_SUPPORTED
MOST_ALIGNED = 256  # bytes: what cudaMalloc gives


class CuTensor(Peer):
    """The kernel that cuTENSOR's model chooses; planned once, before anything is timed. Plans are never freed."""

    name = "cutensor"
    missing = "pip install cutensor-cu13, or set GPUMEM_CUTENSOR to the path of libcutensor.so.2"

    def __init__(self) -> None:
        spec = importlib.util.find_spec("cutensor")
        folders = (spec.submodule_search_locations or []) if spec else []
        packaged = [f"{folder}/lib/libcutensor.so.2" for folder in folders]
        library, _ = find_library("GPUMEM_CUTENSOR", "cutensor", packaged)
        if library is None or not hasattr(library, "cutensorCreatePermutation"):
            return
        self._library = library
        library.cutensorGetErrorString.restype = ctypes.c_char_p
        library.cutensorGetVersion.restype = ctypes.c_size_t
        self._handle = ctypes.c_void_p()
        self._preference = ctypes.c_void_p()
        self._try("cutensorCreate", ctypes.byref(self._handle))
        make = (ctypes.byref(self._preference), ctypes.c_int(MODEL), ctypes.c_int(NO_JIT))
        self._try("cutensorCreatePlanPreference", self._handle, *make)
        self.missing = ""

    def version(self) -> str:
        number = self._library.cutensorGetVersion()
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def permute(self, x: Any, axes: Sequence[int], out: Any) -> Call | None:
        return self.copy(x.permute(*axes), out)

    def copy(self, x: Any, out: Any) -> Call | None:
        kind = KINDS.get(str(getattr(x, "dtype", None)))  # a reversed view is no tensor
        if kind is None or min(x.shape, default=0) < 1:
            return None
        _, arithmetic, real = kind
        library = self._library
        modes = (ctypes.c_int32 * len(x.shape))(*range(len(x.shape)))
        source, target = self._describe(x, kind), self._describe(out, kind)
        work, plan = ctypes.c_void_p(), ctypes.c_void_p()
        compute = ctypes.c_void_p.in_dll(library, f"CUTENSOR_COMPUTE_DESC_{arithmetic}")
        ends = (source, modes, ctypes.c_int(IDENTITY), target, modes)
        if not self._try("cutensorCreatePermutation", self._handle, ctypes.byref(work), *ends, compute):
            return None
        no_workspace = ctypes.c_uint64(0)
        if not self._try("cutensorCreatePlan", self._handle, ctypes.byref(plan), work, self._preference, no_workspace):
            return None

        import torch

        one = (real * 2)(1, 0)  # a complex one begins like a real one
        run, handle = library.cutensorPermute, self._handle
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        pointers = (ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()))

        def call() -> None:
            if status := run(handle, plan, one, *pointers, stream):
                raise RuntimeError(self._text("cutensorPermute", status))

        return call

    def _describe(self, x: Any, kind: tuple[int, str, type[Any]]) -> ctypes.c_void_p:
        """A tensor's descriptor."""
        many = ctypes.c_int64 * len(x.shape)
        alignment = min(x.data_ptr() & -x.data_ptr(), MOST_ALIGNED)
        made = ctypes.c_void_p()
        layout = (ctypes.c_uint32(len(x.shape)), many(*x.shape), many(*x.stride()))
        rest = (ctypes.c_int(kind[0]), ctypes.c_uint32(alignment))
        self._try("cutensorCreateTensorDescriptor", self._handle, ctypes.byref(made), *layout, *rest)
        return made

    def _try(self, function: str, *arguments: Any) -> bool:
        """Calls a function; whether it supports what was asked. Raises RuntimeError where it failed."""
        status = getattr(self._library, function)(*arguments)
        if status not in (0, NOT_SUPPORTED):
            raise RuntimeError(self._text(function, status))
        return bool(status == 0)

    def _text(self, function: str, status: int) -> str:
        return f"{function}: {self._library.cutensorGetErrorString(ctypes.c_int(status)).decode()}"
