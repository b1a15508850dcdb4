"""Arguments of a kernel as the command line has them: `out:f32[1024,1024]`, `x:f32[4096]=random`, `n=7`, `1024`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import UsageError, unknown

SHORT = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
FILLS = ("random", "zeros", "ones", "arange")
_ARRAY = re.compile(r"(?:(?P<name>\w+):)?(?P<type>\w+)\[(?P<shape>[\d, x]*)\](?:=(?P<fill>.+))?")
_SCALAR = re.compile(r"(?:(?P<name>\w+)(?::(?P<type>\w+))?=)?(?P<value>\S+)")


@dataclass(frozen=True)
class Argument:
    """A kernel's argument: its name, "" without one, and an array, a number or None."""

    name: str
    value: Any


def parse(text: str) -> Argument:
    """An argument from its text.

    Arrays: name:type[shape]=fill, where the fill is random (the same in every run), zeros (the default), ones, arange,
    a number, or a .npy file, whose items must be as many. Numbers: 7, 1.5, 0x10, n=7, n:u32=7; null for a null pointer.
    Types: f16 f32 f64 i8 ... u64, or NumPy's names.

    Raises UsageError for a text that is none of these, and for a file that cannot be read.

    >>> parse("x:f32[2,3]=arange").value
    array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    >>> parse("n=7"), parse("null").value
    (Argument(name='n', value=7), None)
    """
    if match := _ARRAY.fullmatch(text):
        shape = tuple(int(part) for part in re.split("[x, ]+", match["shape"]) if part)
        return Argument(match["name"] or "", filled(shape, dtype_of(match["type"]), match["fill"] or "zeros"))
    if text.endswith(".npy"):
        name, _, path = text.rpartition("=")
        return Argument(name.partition(":")[0], loaded(path))
    match = _SCALAR.fullmatch(text)
    if not match:
        raise UsageError(f"argument {text!r}: such as out:f32[1024,1024], x:f32[4096]=random, n=7 or 7")
    value = number(match["value"], text)
    if match["type"]:
        value = dtype_of(match["type"]).type(value)
    return Argument(match["name"] or "", value)


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of a name such as f32 or float32."""
    try:
        return np.dtype(SHORT.get(name, name))
    except TypeError:
        raise unknown("type", name, SHORT) from None


def number(text: str, whole: str) -> int | float | None:
    """An integer, a float, or None for null."""
    if text in ("null", "none", "None", "nullptr"):
        return None
    for read in (lambda: int(text, 0), lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    raise UsageError(f"argument {whole!r}: {text!r} is no number, and no array such as x:f32[4096]=random")


def filled(shape: tuple[int, ...], dtype: np.dtype[Any], fill: str) -> np.ndarray[Any, Any]:
    """A new array. Random numbers are from [0, 1) for floats, and all bits for integers; the same in every run."""
    if fill == "random":
        return random(shape, dtype)
    if fill == "zeros":
        return np.zeros(shape, dtype)
    if fill == "ones":
        return np.ones(shape, dtype)
    if fill == "arange":
        return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    if fill.endswith(".npy"):
        given = loaded(fill)
        if given.size != int(np.prod(shape)):
            raise UsageError(f"{fill} holds {given.size} items, and shape {shape} has {int(np.prod(shape))}")
        return np.ascontiguousarray(given.astype(dtype)).reshape(shape)
    value = number(fill, fill) if fill not in FILLS else None
    if value is None:
        raise unknown("filling", fill, (*FILLS, "a number", "FILE.npy"))
    return np.full(shape, value, dtype)


def random(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Random numbers from one seed."""
    generator = np.random.default_rng(0)
    if dtype.kind == "f":
        return np.asarray(generator.random(shape)).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(generator.random(shape) + 1j * generator.random(shape)).astype(dtype)
    raw = generator.bytes(int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(bytearray(raw), dtype).reshape(shape)


def loaded(path: str) -> np.ndarray[Any, Any]:
    """The array of a .npy file."""
    try:
        array: np.ndarray[Any, Any] = np.load(Path(path), allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    return array
