"""The C extension. Its functions' documentation is in their docstrings."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, final, overload, type_check_only

import numpy as np

class _SpeaksDLPack(Protocol):
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...

class _HasCudaInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...

class _HasCudaStream(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...

_Stream = int | _HasCudaStream | None
_Array = TypeVar("_Array", bound=_SpeaksDLPack | _HasCudaInterface)
_AnyArray = np.ndarray[Any, np.dtype[Any]]

@final
@type_check_only
class Lens:
    def describe(self) -> dict[str, Any]: ...
    def run(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        cluster: tuple[int, int, int],
        shared: int,
        parameters: bytes,
        pointers: list[tuple[int, int, int]],
        buffers: list[tuple[int, int, str, int, bool]],
        units: tuple[int, int, int],
        options: tuple[int, int, str | None, int, int, float],
        counted: bytes,
        /,
    ) -> dict[str, Any]: ...

@final
class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __dlpack__(
        self,
        /,
        *,
        stream: _Stream = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self, /) -> tuple[int, int]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

def transpose(
    x: _Array,
    /,
    axes: Sequence[int] | None = None,
    *,
    out: Any = None,
    device: Any = None,
    stage: str | None = None,
    stream: _Stream = None,
) -> _Array: ...
def permute_dims(
    x: _Array,
    /,
    axes: Sequence[int],
    *,
    out: Any = None,
    device: Any = None,
    stage: str | None = None,
    stream: _Stream = None,
) -> _Array: ...
def matrix_transpose(
    x: _Array, /, *, out: Any = None, device: Any = None, stage: str | None = None, stream: _Stream = None
) -> _Array: ...
def copy(
    x: _Array, /, *, out: Any = None, device: Any = None, stage: str | None = None, stream: _Stream = None
) -> _Array: ...
@overload
def sum(
    x: _AnyArray,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: Any = None,
    stage: str | None = None,
    stream: _Stream = None,
) -> _AnyArray: ...
@overload
def sum(
    x: _Array,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
    out: Any = None,
    device: Any = None,
    stage: str | None = None,
    stream: _Stream = None,
) -> _Array: ...
def set_num_threads(n: int, /) -> None: ...
def get_num_threads() -> int: ...
def _isa() -> str: ...
def _isas() -> list[tuple[str, str, bool]]: ...
def _caches() -> dict[str, int]: ...
def _stages() -> list[tuple[str, str, str, str, str, int]]: ...
def _plan(
    itemsize: int, shape: Sequence[int], src_strides: Sequence[int], dst_strides: Sequence[int], /
) -> dict[str, Any]: ...
def _gather_fields(records: _AnyArray, planes: list[_AnyArray], offsets: list[int], /) -> None: ...
def _scatter_fields(records: _AnyArray, planes: list[_AnyArray], offsets: list[int], /) -> None: ...
def _interleave(planes: list[Any], /) -> Any: ...
def _reference_copy(out: _AnyArray, x: _AnyArray, how: str, /) -> None: ...
def _reference_read(x: _AnyArray, /) -> int: ...
def _cuda() -> dict[str, Any]: ...
def _run_stage(
    lesson: str,
    stage: str,
    x: Any,
    shape: Sequence[int],
    figures: tuple[int, ...],
    index: Any,
    out: Any,
    stream: _Stream,
    /,
) -> Any: ...
def _lens(text: str, file: str, kernel: str | None, /) -> Lens: ...
def _lens_isas() -> list[tuple[str, str, bool]]: ...
def _kernel_ptx(kernel: str, /) -> str | None: ...
def _simulate_move(
    launch: Callable[..., object],
    lesson: str,
    stage: str,
    itemsize: int,
    shape: Sequence[int],
    src_strides: Sequence[int],
    dst_strides: Sequence[int],
    src: int,
    dst: int,
    /,
) -> None: ...
def _simulate_stage(
    launch: Callable[..., object],
    lesson: str,
    stage: str,
    item: int,
    dtype: str,
    figures: tuple[int, ...],
    src: int,
    dst: int,
    index: tuple[int, int],
    /,
) -> None: ...
def _kept() -> int: ...
def _cuda_move(
    device: int,
    stream: int,
    itemsize: int,
    shape: Sequence[int],
    src_strides: Sequence[int],
    dst_strides: Sequence[int],
    src: int,
    dst: int,
    /,
) -> None: ...
def _count(what: str, addresses: _AnyArray, shared: _AnyArray, active: _AnyArray, width: int, /) -> bytes: ...
def _wavefronts(rule: str, addresses: bytes, active: int, width: int, /) -> tuple[int, bytes]: ...
def _ptx(text: bytes, name: str, /) -> dict[str, Any]: ...
def _watch(
    threads: int, shared_bytes: int, grain: int, events: list[tuple[str, tuple[int, ...], Sequence[int] | None]], /
) -> tuple[list[dict[str, Any]], list[int]]: ...
def _fail_allocation(count: int, /) -> None: ...
