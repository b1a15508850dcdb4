"""Bytes and ranges as people write them: 64K, 1.5MiB, 1K:4G, 1:64."""

from __future__ import annotations

import re
from fractions import Fraction

from .errors import UsageError

UNITS = ("", "K", "M", "G", "T")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(?:i?[bB])?")
MOST = 4096  # values of a range


def parse_bytes(text: str) -> int:
    """Bytes from a text; K, M, G and T are powers of 1024.

    >>> parse_bytes("4K"), parse_bytes("1.5 MiB"), parse_bytes("100")
    (4096, 1572864, 100)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"size {text!r}: such as 100, 64K, 1.5M or 4G")
    value = Fraction(match[1]) * (1 << 10 * UNITS.index(match[2].upper()))
    if value.denominator != 1:
        raise UsageError(f"size {text!r}: not a whole number of bytes")
    return value.numerator


def format_bytes(count: float) -> str:
    """A size in words, as short as it can be said.

    >>> format_bytes(4096), format_bytes(1 << 30), format_bytes(1000), format_bytes(1.5 * 2**20)
    ('4 KiB', '1 GiB', '1000 B', '1.5 MiB')
    """
    power = 0
    while power < len(UNITS) - 1 and count >= 1024 and (count / 1024) * 8 % 1 == 0:
        count /= 1024
        power += 1
    while count >= 10240 and power < len(UNITS) - 1:
        count /= 1024
        power += 1
    return f"{count:.4g} {UNITS[power]}iB" if power else f"{count:g} B"


def parse_values(text: str, *, sizes: bool = False) -> tuple[int, ...]:
    """The values of a list such as 1,2,33 or of a range with both its ends.

    1:64 counts by 1, 1:64:3 by 3, 1:64:x2 doubles. Sizes double where no step is given: 1K:4G.

    Raises UsageError for what is neither, for ranges that have no value or too many.

    >>> parse_values("1,2,33"), parse_values("0:10:5"), parse_values("1K:8K", sizes=True)
    ((1, 2, 33), (0, 5, 10), (1024, 2048, 4096, 8192))
    """
    found: list[int] = []
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) == 1:
            found.append(_number(ends[0], sizes))
            continue
        if len(ends) > 3:
            raise UsageError(f"range {part!r}: such as 1:64, 1:64:3 or 1K:4G:x4")
        low, high = _number(ends[0], sizes), _number(ends[1], sizes)
        step = ends[2] if len(ends) == 3 else "x2" if sizes else "1"
        times, by = step.startswith("x"), _number(step.removeprefix("x"), sizes)
        if low > high or by < 1 or (times and (by < 2 or low < 1)):
            raise UsageError(f"range {part!r}: from the smaller to the larger end, by a step of at least 1 or x2")
        if not times and (high - low) // by >= MOST:
            raise UsageError(f"range {part!r}: more than {MOST} values; give a larger step")
        while low <= high:
            found.append(low)
            low = low * by if times else low + by
    return tuple(dict.fromkeys(found))


def _number(text: str, sizes: bool) -> int:
    if sizes:
        return parse_bytes(text)
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} is no whole number, and no range such as 1:64") from None
