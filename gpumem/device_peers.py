"""Others who do the same work on a CUDA device: PyTorch, which is always there, CuPy, cuBLAS by way of it, cuTENSOR.

As peers.py has it, but that arrays are PyTorch's, or `Reversed` where those cannot be had.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from . import peers
from .cutensor import CuTensor
from .peers import Call, Peer

Tensor = Any


class Reversed:
    """`base[index]` where a step is negative, which PyTorch has none of: by the CUDA array interface."""

    def __init__(self, base: Tensor, index: tuple[slice, ...]) -> None:
        interface, size = base.__cuda_array_interface__, base.element_size()
        axes = [slice_.indices(length) for slice_, length in zip(index, base.shape, strict=True)]
        start = sum(first * stride * size for (first, _, _), stride in zip(axes, base.stride(), strict=True))
        shape = tuple(len(range(*axis)) for axis in axes)
        strides = tuple(stride * step * size for (_, _, step), stride in zip(axes, base.stride(), strict=True))
        data = (interface["data"][0] + start, True)
        self.base, self.index = base, index
        self.__cuda_array_interface__ = {**interface, "shape": shape, "strides": strides, "data": data}


class Torch(peers.Torch):
    """PyTorch's copy_ of a permuted view; it cannot reverse without a copy."""

    def _tensor(self, x: Tensor) -> Tensor | None:
        return None if isinstance(x, Reversed) else x


class CuPy(Peer):
    """CuPy's copy of a permuted view."""

    name = "cupy"
    missing = "pip install cupy-cuda13x"

    def __init__(self) -> None:
        if importlib.util.find_spec("cupy") is None:
            return
        import cupy

        self._cupy: Any = cupy
        self.missing = ""

    def version(self) -> str:
        return str(self._cupy.__version__)

    def _array(self, x: Tensor | Reversed) -> Any:
        if isinstance(x, Reversed):
            return self._cupy.from_dlpack(x.base)[x.index]
        return self._cupy.from_dlpack(x)

    def permute(self, x: Tensor, axes: Sequence[int], out: Tensor) -> Call | None:
        view, target = self._array(x).transpose(axes), self._array(out)
        return lambda: self._cupy.copyto(target, view)

    def copy(self, x: Tensor | Reversed, out: Tensor) -> Call | None:
        view, target = self._array(x), self._array(out)
        return lambda: self._cupy.copyto(target, view)

    def sum(self, x: Tensor, axis: int | None, out: Tensor) -> Call | None:
        if str(x.dtype) == "torch.bfloat16":
            return None
        view, target = self._array(x), self._array(out)
        return lambda: view.sum(axis=axis, dtype=target.dtype, out=target)


class CuBlas(CuPy):
    """cuBLAS's geam for matrices, which CuPy reaches."""

    name = "cublas"

    def version(self) -> str:
        return f"geam by CuPy {super().version()}"

    def permute(self, x: Tensor, axes: Sequence[int], out: Tensor) -> Call | None:
        source, target = self._array(x), self._array(out)
        if tuple(axes) != (1, 0) or source.dtype.char not in "fdFD":
            return None
        from cupy import cublas

        # Column-major: source.T is what lies in memory, and target.T what comes to lie there.
        return lambda: cublas.geam("T", "N", 1.0, source.T, 0.0, target.T, target.T)

    def copy(self, x: Tensor | Reversed, out: Tensor) -> Call | None:
        return None

    def sum(self, x: Tensor, axis: int | None, out: Tensor) -> Call | None:
        return None


PEERS: dict[str, type[Peer]] = {"torch": Torch, "cupy": CuPy, "cublas": CuBlas, "cutensor": CuTensor}


def present(names: Sequence[str] | None) -> list[Peer]:
    """The peers asked for, or every one that is here (None). Raises UsageError where one asked for is missing."""
    return peers.present(names, tuple(PEERS), lambda name: PEERS[name]())
