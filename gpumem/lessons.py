"""One stage of a lesson on an array: what the ladder runs, to be called by itself."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from .errors import UsageError, unknown
from .stage_table import Stage, lessons, stages

# CUDA by DLPack's numbers: its own memory, and memory that it manages.
CUDA_DEVICES = (2, 13)


@dataclass(frozen=True)
class Request:
    """A stage, the shape that it works on, and the options that the caller gave."""

    stage: Stage
    shape: tuple[int, ...]
    stride: int | None
    offset: int
    field: int
    indices: tuple[int, ...] | None

    @property
    def items(self) -> int:
        """Items of x."""
        return math.prod(self.shape)

    def axes(self, count: int) -> tuple[int, ...]:
        """The shape, which must have so many axes."""
        if len(self.shape) != count:
            raise UsageError(f"{self.stage}: x has shape {self.shape}, and this lesson is about {count}-d arrays")
        return self.shape


@dataclass(frozen=True)
class Work:
    """The shape of the result, and the figures that the kernel is told (gm_lesson_call's)."""

    shape: tuple[int, ...]
    n: int
    rows: int = 0
    columns: int = 0
    items: int = 0
    stride: int = 0
    offset: int = 0
    field: int = 0

    @property
    def figures(self) -> tuple[int, ...]:
        """In the order of `_core._run_stage`."""
        return (self.n, self.rows, self.columns, self.items, self.stride, self.offset, self.field)


def _read(request: Request) -> Work:
    (items,) = request.axes(1)
    if request.stage.name == "gather":
        if request.indices is None:
            raise UsageError(f"{request.stage} needs index=: an array of int32 or int64 on the same device")
        return Work(request.indices, math.prod(request.indices), items=items)
    if request.stage.name == "offset":
        if not 0 <= request.offset <= items:
            raise UsageError(f"{request.stage}: offset {request.offset} of an array of {items} items")
        return Work((items - request.offset,), items - request.offset, offset=request.offset)
    stride = 1 if request.stage.name == "coalesced" else 32 if request.stride is None else request.stride
    if stride == 0:
        raise UsageError(f"{request.stage}: a stride of 0 would read one item for ever")
    count = -(-items // abs(stride))
    return Work((count,), count, stride=stride, offset=items - 1 if stride < 0 and items else 0)


def _walk2d(request: Request) -> Work:
    rows, columns = request.axes(2)
    return Work(request.shape, rows * columns, rows, columns)


def _layout(request: Request) -> Work:
    rows, columns = request.axes(2)
    if not request.stage.name.endswith("_field"):
        return Work((columns, rows), rows * columns, rows, columns)
    fields, count = (columns, rows) if request.stage.name == "aos_field" else (rows, columns)
    field = request.field + fields if request.field < 0 else request.field
    if not 0 <= field < fields:
        raise UsageError(f"{request.stage}: field {request.field} of {fields}")
    return Work((count,), count, rows, columns, field=field)


def _banks(request: Request) -> Work:
    usual = 1 if request.stage.name.startswith("access") else 32
    stride = 0 if request.stage.name == "broadcast" else usual if request.stride is None else request.stride
    return Work(request.shape, request.items, stride=stride)


def _same(request: Request) -> Work:
    return Work(request.shape, request.items)


def _reduce(request: Request) -> Work:
    return Work((), request.items)


_WORK: dict[str, Callable[[Request], Work]] = {
    "read": _read,
    "walk2d": _walk2d,
    "layout": _layout,
    "banks": _banks,
    "reduce": _reduce,
    "copy": _same,
    "cache": _same,
}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "copy": _core.copy,
    "transpose": _core.transpose,
    "reduce": _core.sum,
}


def _device_of(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return "cpu"
    if hasattr(x, "__dlpack_device__"):
        return "cuda" if int(x.__dlpack_device__()[0]) in CUDA_DEVICES else "cpu"
    return "cuda" if hasattr(x, "__cuda_array_interface__") else "cpu"


def _shape_of(x: Any, what: str) -> tuple[int, ...]:
    shape = getattr(x, "shape", None)
    if shape is None:
        shape = getattr(x, "__cuda_array_interface__", {}).get("shape")
    if shape is None:
        raise UsageError(f"{what} does not say its shape: pass an array of its library's, not {type(x)}")
    return tuple(map(operator.index, shape))


def _stage_of(lesson: str, name: str, device: str) -> Stage:
    rows = stages(lesson, device)
    for row in rows:
        if row.name == name:
            return row
    if not rows:
        other = "cuda" if device == "cpu" else "cpu"
        where = {"cpu": "host memory", "cuda": "the memory of a CUDA device"}
        raise UsageError(f"{lesson} has no stages for arrays in {where[device]}: x must be in {where[other]}")
    raise unknown(f"{device} stage of {lesson}", name, [row.name for row in rows])


def run(
    lesson: str,
    stage: str,
    x: Any,
    /,
    *,
    stride: int | None = None,
    offset: int = 0,
    field: int = 0,
    index: Any = None,
    out: Any = None,
    stream: Any = None,
    device: str | None = None,
) -> Any:
    """Runs one stage of a lesson, the kernel that the stage table names, and returns what it makes of x.

    x is an array on a CUDA device, or in host memory for the lessons copy, transpose and reduce, which have stages for
    the CPU. It must be dense and in C order there: a stage is about where items lie, and nothing is copied on the way.
    The result is a new array of x's library, or `out`, which must not share memory with x. In NumPy's words:

    ==================  ====================================  =======================================================
    lesson and stage    result                                options
    ==================  ====================================  =======================================================
    read strided        x[::stride]                           stride: 32, any but 0
    read offset         x[offset:]                            offset: 0 to x.size
    read gather         x[index]                              index: int32 or int64; out of range gives 0
    read coalesced      x.copy()
    walk2d ...          x.copy()                              x has 2 axes
    layout aos_field    x[:, field]                           x has shape (n, k): n records of k fields
    layout aos_*        x.T.copy()
    layout soa_field    x[field]                              x has shape (k, n): k planes
    layout soa_*        x.T.copy()
    banks ...           x.flat[order], shaped as x            stride: 0 to 1023; 32, for access4, 8, 16: 1
    copy ...            x.copy()
    cache ...           x.copy()
    transpose ...       x.T.copy()                            x has gaps, or any number of axes, where the stage can
    reduce ...          x.sum()                               float32, float64, int32, int64 on CUDA devices
    ==================  ====================================  =======================================================

    For `banks` the items are cut into tiles of 1024, the last one of the m that are left: item p of a tile comes from
    its item `(p % 32 * stride + p // 32) % m`, so that a stride of 32 transposes full tiles. The stages access4,
    access8 and access16 do this with pieces of so many bytes instead of items, and copy what is left over.

    `stream` is as for `gpumem.transpose`. device="sim" has the lens execute the CUDA stage on the CPU, for an x in
    host memory: what a GPU would answer, slowly.

    Raises UsageError (a ValueError) for a lesson, stage or option that does not exist, naming those that do, and for an
    x that has the wrong number of axes; ValueError where a stage cannot take x by its nature, with the reason: an
    address that its accesses cannot have, records that fit no access; what the operations raise for arrays that cannot
    be taken.

    >>> gpumem.run("transpose", "naive", np.array([[1, 2], [3, 4]]))
    array([[1, 3],
           [2, 4]])
    >>> gpumem.run("reduce", "simd", np.arange(5))
    array(10)
    >>> gpumem.run("read", "strided", np.arange(5))
    Traceback (most recent call last):
    gpumem.errors.UsageError: read has no stages for arrays in host memory: x must be in the memory of a CUDA device
    """
    if device == "sim":
        return simulated(lesson, stage, x, stride=stride, offset=offset, field=field, index=index, out=out)
    if device not in (None, _device_of(x)):
        raise UsageError(f"device {device!r}: x is in the memory of the {_device_of(x)}; None and 'sim' are taken")
    return prepared(lesson, stage, x, stride=stride, offset=offset, field=field, index=index, out=out, stream=stream)()


def work_of(request: Request) -> Work:
    """What a stage makes of an array of that shape."""
    return _WORK[request.stage.lesson](request)


def simulated(
    lesson: str, stage: str, x: Any, *, stride: int | None, offset: int, field: int, index: Any, out: Any
) -> Any:
    """`run` in the lens."""
    from . import simulate

    row = simulate.stage_named(lesson, stage)
    source = simulate.host(x)
    if lesson not in _WORK or row.kernel == "gm_cuda_move":
        axes = range(source.ndim)
        return simulate.permuted(lesson, source, axes[::-1] if lesson == "transpose" else axes, out, stage)
    target = None if out is None else simulate.host(out, "out")
    for name, array in (("x", source), ("out", target)):
        if array is not None and not array.flags.c_contiguous:
            raise UsageError(f"{row}: {name} has gaps, or axes in another order than C's: pass gpumem.copy({name})")
    where = None if index is None else np.ascontiguousarray(index)
    if where is not None and where.dtype not in (np.int32, np.int64):
        raise UsageError(f"{row}: index must have dtype int32 or int64")
    request = Request(row, source.shape, stride, offset, field, None if where is None else where.shape)
    result, _ = simulate.run_stage(row, source, work_of(request), target, where)
    return result if out is None else out


def prepared(
    lesson: str,
    stage: str,
    x: Any,
    *,
    stride: int | None = None,
    offset: int = 0,
    field: int = 0,
    index: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Callable[[], Any]:
    """What `run` does once all that Python has to find out is known: for who wants to time the rest."""
    if lesson not in lessons():
        raise unknown("lesson", lesson, lessons())
    device = _device_of(x)
    row = _stage_of(lesson, stage, device)
    if lesson in _OPERATIONS and (device == "cpu" or lesson not in _WORK or row.kernel == "gm_cuda_move"):
        operation = _OPERATIONS[lesson]
        return lambda: operation(x, stage=stage, out=out, stream=stream)
    request = Request(
        row,
        _shape_of(x, "x"),
        None if stride is None else operator.index(stride),
        operator.index(offset),
        operator.index(field),
        None if index is None else _shape_of(index, "index"),
    )
    work = work_of(request)
    gathers = index if stage == "gather" else None
    arguments = (lesson, stage, x, work.shape, work.figures, gathers, out, stream)
    return lambda: _core._run_stage(*arguments)
