"""Random contents for measurements: constant pages would be compressed, deduplicated or never really touched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fill(x: NDArray[Any], scale: float = 1.0, seed: int = 0) -> None:
    """Fills a dense array: floats and complex parts in [0, scale), bool with 0 and 1, all else with random bytes."""
    rng = np.random.Generator(np.random.SFC64(seed))
    if x.dtype.kind in "fc":
        part = np.dtype(f"f{x.itemsize // (2 if x.dtype.kind == 'c' else 1)}")
        flat = x.reshape(-1).view(part)
        if part.itemsize in (4, 8):
            rng.random(dtype=part.type, out=flat)
        else:
            flat[...] = rng.random(flat.size, dtype=np.float32)
        if scale != 1.0:
            flat *= part.type(scale)
        if not x.dtype.isnative:
            flat.byteswap(inplace=True)
        return
    flat_bytes = x.reshape(-1).view(np.uint8)
    flat_bytes[...] = np.frombuffer(rng.bytes(flat_bytes.size), np.uint8)
    if x.dtype.kind == "b":
        flat_bytes &= 1


def pattern(out: NDArray[Any]) -> None:
    """Overwrites an output with what no test expects there, so that an item that is not written shows."""
    out.reshape(-1).view(np.uint8)[...] = 0xA5
