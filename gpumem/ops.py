"""Operations that are put together in Python: records to planes and back. The others are C functions of `_core`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core

Array = np.ndarray[Any, np.dtype[Any]]


def to_soa(x: Any, /) -> Any:
    """Takes records apart into planes, one a field (array of structures to structure of arrays).

    A structured ndarray of any shape gives a dict, field name to plane: a dense array of the field's dtype and of
    shape `x.shape`, followed by the field's own shape if it is a subarray. Padding is dropped; a field that is itself
    a structure stays one (call again to take it apart). Any other array, NumPy's or DLPack's, of shape (..., k) gives
    one dense array of shape (k, ...), whose rows are the planes, of the same dtype and kind of array.

    Raises TypeError for what is no array or holds Python objects, ValueError for an array with less than two axes
    and no fields.

    >>> points = np.array([(1, 2.5), (3, 4.5)], dtype=[("id", "i4"), ("x", "f8")])
    >>> gpumem.to_soa(points)["x"]
    array([2.5, 4.5])
    >>> gpumem.to_soa(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    if not (isinstance(x, np.ndarray) and x.dtype.names is not None):
        x, axes = _with_axes(x, "x")
        return _core.permute_dims(x, (axes[-1], *axes[:-1]))
    records = _flat(x)
    fields = _fields(x.dtype)
    planes = {name: np.empty(records.shape + dtype.shape, dtype.base) for name, (dtype, _) in fields.items()}
    _core._gather_fields(records, list(planes.values()), [offset for _, offset in fields.values()])
    return {name: plane.reshape(x.shape + plane.shape[1:]) for name, plane in planes.items()}


def to_aos(fields: Any, /, *, dtype: npt.DTypeLike | None = None) -> Any:
    """Puts records together from planes, one a field (structure of arrays to array of structures).

    `fields` is one of

    - a mapping, field name to plane: the result is a structured ndarray of the shape that all planes begin with.
      Without `dtype` its fields are those of the mapping, in its order and without padding, and what a plane has
      beyond the common shape is a subarray. `dtype`, a structured one with the same names, may order, align and pad
      them otherwise: padding is filled with zeros.
    - a sequence of k arrays, NumPy's or DLPack's, of one shape (...), dtype and device: the result is a dense array of
      shape (..., k), of the first one's kind; with `dtype`, which takes ndarrays, a structured array whose fields are
      the planes in this order.
    - an array, NumPy's or DLPack's, of shape (k, ...): the result is a dense array of shape (..., k), of the same
      dtype and kind of array.

    Raises TypeError for planes that are no arrays or hold Python objects, ValueError for planes that differ in
    shape or dtype, for a `dtype` with other or overlapping fields, and for no planes at all.

    >>> gpumem.to_aos({"id": np.array([1, 3], "i4"), "x": np.array([2.5, 4.5])})
    array([(1, 2.5), (3, 4.5)], dtype=[('id', '<i4'), ('x', '<f8')])
    >>> gpumem.to_aos([np.array([1, 4]), np.array([2, 5]), np.array([3, 6])])
    array([[1, 2, 3],
           [4, 5, 6]])
    """
    if isinstance(fields, Mapping):
        return _structured(dict(fields), None if dtype is None else np.dtype(dtype))
    if not isinstance(fields, Sequence) or isinstance(fields, memoryview):
        if dtype is not None:
            raise ValueError("dtype is for planes in a mapping or a sequence; an array keeps its own")
        fields, axes = _with_axes(fields, "fields")
        return _core.permute_dims(fields, (*axes[1:], 0))
    if dtype is None and fields and not all(isinstance(plane, np.ndarray) for plane in fields):
        return _core._interleave(list(fields))
    planes = _checked({str(i): plane for i, plane in enumerate(fields)})
    if dtype is None:
        return _interleaved(list(planes.values()))
    record = np.dtype(dtype)
    names = _names(record)
    if len(names) != len(planes):
        raise ValueError(f"{len(planes)} planes for the {len(names)} fields of {record}")
    return _structured(dict(zip(names, planes.values(), strict=True)), record)


def _with_axes(x: Any, what: str) -> tuple[Any, range]:
    """The array and its axes; a copy of one that is known only by its __dlpack__."""
    shape = getattr(x, "shape", None)
    if shape is None and hasattr(x, "__dlpack__"):
        x = _core.copy(x)
        shape = x.shape
    if not isinstance(shape, Sequence) or isinstance(x, memoryview):
        raise TypeError(f"{what} is not an array: pass a numpy.ndarray or an array that has __dlpack__, not {type(x)}")
    if len(shape) < 2:
        raise ValueError(f"{what} is a {len(shape)}-d array without fields: planes need at least 2 axes")
    return x, range(len(shape))


def _names(dtype: np.dtype[Any]) -> tuple[str, ...]:
    if dtype.names is None:
        raise ValueError(f"dtype {dtype} has no fields")
    return dtype.names


def _fields(dtype: np.dtype[Any]) -> dict[str, tuple[np.dtype[Any], int]]:
    """Type and byte offset by name, in the order of the names (dtype.fields also lists titles)."""
    assert dtype.fields is not None
    return {name: (dtype.fields[name][0], dtype.fields[name][1]) for name in _names(dtype)}


def _flat(x: Array) -> Array:
    """The items in C order along one axis: a view where there is one."""
    if x.ndim == 1:
        return x
    return (x if x.flags.c_contiguous else _core.copy(x)).reshape(x.size)


def _rows(plane: Array, ndim: int) -> Array:
    """The first ndim axes as one; what follows them is a value of the field, dense."""
    one_value_dense = ndim == 1 and plane[:1].flags.c_contiguous
    if not (one_value_dense or plane.flags.c_contiguous):
        plane = _core.copy(plane)
    return plane.reshape(math.prod(plane.shape[:ndim]), *plane.shape[ndim:])


def _checked(planes: dict[str, Any]) -> dict[str, Array]:
    if not planes:
        raise ValueError("no planes: at least one is needed")
    for name, plane in planes.items():
        if not isinstance(plane, np.ndarray):
            raise TypeError(f"plane {name} is not a numpy.ndarray but {type(plane)}")
        if plane.dtype.hasobject:
            raise TypeError(f"plane {name} has dtype {plane.dtype}: only plain bytes can be moved")
    return planes


def _interleaved(planes: list[Array]) -> Array:
    shape, dtype = planes[0].shape, planes[0].dtype
    for plane in planes:
        if (plane.shape, plane.dtype) != (shape, dtype):
            raise ValueError(
                f"planes of one shape and dtype are needed: {shape} {dtype} and {plane.shape} {plane.dtype}"
            )
    result = np.empty((*shape, len(planes)), dtype)
    record = np.dtype((np.void, dtype.itemsize * len(planes)))
    records = result.view(record).reshape(math.prod(shape))
    rows = [_rows(plane, plane.ndim) for plane in planes]
    _core._scatter_fields(records, rows, [dtype.itemsize * i for i in range(len(planes))])
    return result


def _structured(given: dict[str, Any], record: np.dtype[Any] | None) -> Array:
    planes = _checked(given)
    if record is None:
        shape = min((plane.shape for plane in planes.values()), key=len)
        record = np.dtype([(name, plane.dtype, plane.shape[len(shape) :]) for name, plane in planes.items()])
    fields = _fields(record) if _names(record) else {}
    if fields.keys() != planes.keys():
        raise ValueError(f"planes {list(planes)} for the fields {list(fields)}")
    _refuse_overlap(fields)

    shapes = {name: plane.shape[: plane.ndim - len(fields[name][0].shape)] for name, plane in planes.items()}
    shape = next(iter(shapes.values()))
    for name, (dtype, _) in fields.items():
        plane = planes[name]
        if plane.dtype != dtype.base or plane.shape != shape + dtype.shape:
            raise ValueError(
                f"plane {name} has shape {plane.shape} and dtype {plane.dtype}, "
                f"its field shape {shape + dtype.shape} and dtype {dtype.base}"
            )
    padded = sum(dtype.itemsize for dtype, _ in fields.values()) < record.itemsize
    records = (np.zeros if padded else np.empty)(math.prod(shape), record)
    rows = [_rows(planes[name], len(shape)) for name in fields]
    _core._scatter_fields(records, rows, [offset for _, offset in fields.values()])
    return records.reshape(shape)


def _refuse_overlap(fields: dict[str, tuple[np.dtype[Any], int]]) -> None:
    end, last = 0, ""
    for name, (dtype, offset) in sorted(fields.items(), key=lambda field: field[1][1]):
        if offset < end and dtype.itemsize:
            raise ValueError(f"fields {last} and {name} share bytes: which one counts is not defined")
        end, last = max(end, offset + dtype.itemsize), name
