"""The arguments of a kernel as a launch of the lens wants them: a block of bytes, and buffers that it points into."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .errors import UsageError

Array = np.ndarray[Any, Any]
_FLOATS = {16: "<e", 32: "<f", 64: "<d"}


class Parameter(NamedTuple):
    """A parameter as the PTX declares it. `kind` is b (untyped), u, s or f; `offset` and `size` are bytes."""

    name: str
    offset: int
    size: int
    align: int
    bits: int
    kind: str
    is_array: bool
    is_pointer: bool

    @property
    def type(self) -> str:
        """As PTX writes it.

        >>> Parameter("n", 0, 4, 4, 32, "u", False, False).type
        'u32'
        """
        return f"{self.kind}{self.bits}" + (f"[{self.size}]" if self.is_array else "")


class Buffer(NamedTuple):
    """Memory that a kernel can reach: where it begins in this process, its bytes, what reports call it."""

    address: int
    size: int
    name: str
    read_only: bool


@dataclass
class Layout:
    """A launch's arguments: the block, (offset in the block, buffer, offset in the buffer) rows, the buffers."""

    block: bytearray
    pointers: list[tuple[int, int, int]] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)  # what owns the memory


def lay_out(parameters: Sequence[Parameter], size: int, args: Sequence[Any], names: Sequence[str] = ()) -> Layout:
    """Gives each argument its place in the parameter block of `size` bytes.

    Arrays become pointers to their first item, into buffers that hold the whole of the memory that their bases own;
    views of one base share a buffer. Numbers take the parameter's type, bytes fill a parameter of as many bytes, None
    is a null pointer. names: what reports call the arrays, each by another name.

    Raises TypeError for a wrong number of arguments, or one that the parameter cannot take, OverflowError for a number
    that does not fit, and UsageError for two arrays of one name.
    """
    if len(args) != len(parameters):
        takes = ", ".join(parameter.type for parameter in parameters)
        raise TypeError(f"the kernel takes {len(parameters)} arguments ({takes}), and {len(args)} were given")
    layout = Layout(bytearray(size))
    arrays: list[tuple[int, Array, str]] = []
    for number, (parameter, value) in enumerate(zip(parameters, args, strict=True)):
        where = f"argument {number} ({parameter.type} {parameter.name})"
        given = as_array(value, where) if is_array(value) else None
        if given is None or parameter.is_array:
            put = pack(parameter, value if given is None else given.tobytes(), where)
            layout.block[parameter.offset : parameter.offset + len(put)] = put
        elif parameter.bits != 64 or parameter.kind == "f":
            raise TypeError(f"{where} is no pointer, and an array was given")
        else:
            arrays.append((parameter.offset, given, names[number] if number < len(names) else f"argument {number}"))
    called = [name for _, _, name in arrays]
    if twice := next((name for name in called if called.count(name) > 1), None):
        raise UsageError(f"two arrays are called {twice!r}: reports tell them apart by their names")
    _place(layout, arrays)
    return layout


def is_array(value: Any) -> bool:
    """Whether it is memory rather than a number."""
    if isinstance(value, (np.generic, bytes, bytearray, int, float, bool, type(None))):
        return False
    return isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")


def as_array(value: Any, where: str) -> Array:
    """The array as NumPy sees it, sharing its memory. Raises TypeError where that cannot be."""
    if isinstance(value, np.ndarray):
        array = value
    else:
        try:
            array = np.from_dlpack(value)
        except (BufferError, TypeError, RuntimeError, ValueError) as error:
            raise TypeError(f"{where}: an array that NumPy cannot share: {error}") from None
    if array.dtype.hasobject:
        raise TypeError(f"{where}: an array of dtype {array.dtype}, whose items refer to objects")
    return array


def bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of an array and behind its last.

    >>> low, high = bounds(np.zeros((4, 5), "f4")[::-1, :3])
    >>> high - low
    72
    """
    low = high = int(array.__array_interface__["data"][0])
    if array.size == 0:
        return low, low
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high + array.itemsize


def base_of(array: Array) -> Array:
    """The array that owns the memory, or the one nearest to its owner."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _place(layout: Layout, arrays: Sequence[tuple[int, Array, str]]) -> None:
    """One buffer for each stretch of memory that some of the arrays lie in."""
    spans = []
    for _, array, name in arrays:
        (low, high), (first, last) = bounds(base_of(array)), bounds(array)
        spans.append((min(low, first), max(high, last), name, not array.flags.writeable))
    merged: list[Buffer] = []
    for low, high, name, read_only in sorted(spans, key=lambda span: span[:2]):
        before = merged[-1] if merged else None
        if before and low < before.address + before.size:
            size = max(high, before.address + before.size) - before.address
            merged[-1] = Buffer(before.address, size, before.name, before.read_only and read_only)
        elif high > low:
            merged.append(Buffer(low, high - low, name, read_only))
    # In the order of the arguments: where things lie must not depend on where this process has them.
    order = {span[2]: i for i, span in reversed(list(enumerate(spans)))}
    layout.buffers = sorted(merged, key=lambda buffer: order[buffer.name])
    for offset, array, _ in arrays:
        first = int(array.__array_interface__["data"][0])
        for index, buffer in enumerate(layout.buffers):
            if buffer.address <= first < buffer.address + buffer.size:
                layout.pointers.append((offset, index, first - buffer.address))
                break
        layout.keep.append(array)


def pack(parameter: Parameter, value: Any, where: str) -> bytes:
    """A number, or bytes, as the parameter's type has them."""
    if isinstance(value, (bytes, bytearray, np.void)):
        raw = value.tobytes() if isinstance(value, np.void) else bytes(value)
        if len(raw) != parameter.size:
            raise TypeError(f"{where} has {parameter.size} bytes, and {len(raw)} were given")
        return raw
    if parameter.is_array:
        raise TypeError(f"{where} is a struct: give its {parameter.size} bytes, not {value!r}")
    if value is None:
        if parameter.bits != 64 or parameter.kind == "f":
            raise TypeError(f"{where} is no pointer, and None was given")
        return bytes(8)
    if parameter.kind == "f" or (parameter.kind == "b" and isinstance(value, (float, np.floating))):
        return _pack_float(parameter, value, where)
    if isinstance(value, (float, np.floating)) or not hasattr(value, "__index__"):
        raise TypeError(f"{where} is an integer, and {value!r} was given")
    number, bits = int(value), parameter.bits
    if not -(1 << (bits - 1)) <= number < 1 << bits:
        raise OverflowError(f"{where}: {number} does not fit into {bits} bits")
    return (number & ((1 << bits) - 1)).to_bytes(bits // 8, "little")


def _pack_float(parameter: Parameter, value: Any, where: str) -> bytes:
    if parameter.bits not in _FLOATS or not isinstance(value, (int, float, np.number, np.bool_)):
        raise TypeError(f"{where} cannot take {value!r}")
    try:
        return struct.pack(_FLOATS[parameter.bits], value)
    except (OverflowError, struct.error):
        raise OverflowError(f"{where}: {value!r} does not fit into {parameter.bits} bits") from None
