"""Runs PTX in the lens below gpumem.Kernel: any ISA variant, any limit, and the result as the C code gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gpumem import _core

ISAS = [name for name, _, runs_here in _core._lens_isas() if runs_here]
PTX = Path(__file__).parent / "data" / "ptx"
HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
SHARED, GLOBAL, REGISTERS = 1, 2, 4  # GM_WATCH_*


def dims(value: Any) -> tuple[int, int, int]:
    return (*((value,) if isinstance(value, int) else value), 1, 1)[:3]


def run(
    text: str,
    grid: Any,
    block: Any,
    *args: Any,
    kernel: str | None = None,
    shared: int = 0,
    cluster: Any = (0, 0, 0),
    isa: str | None = None,
    threads: int = 1,
    watch: int = 0,
    instructions: int = 20_000_000,
    memory: int = 0,
    seconds: float = 20.0,
    units: tuple[int, int, int] = (0, 1, 0),
    lead: int = 0,
) -> dict[str, Any]:
    """args: an array is a buffer (whose bytes change), a number the parameter's value, bytes a parameter's bytes."""
    lens = _core._lens(text, "test.ptx", kernel)
    described: Any = lens.describe()
    parameters = bytearray(described["parameter_bytes"])
    pointers, buffers = [], []
    for row, value in zip(described["parameters"], args, strict=True):
        name, offset, size = row[:3]
        if isinstance(value, np.ndarray):
            pointers.append((offset, len(buffers), 0))
            buffers.append((value.ctypes.data, value.nbytes, name, lead, False))
        else:
            raw = value if isinstance(value, bytes) else int(value).to_bytes(size, "little", signed=value < 0)
            parameters[offset : offset + size] = raw
    options = (threads, watch, isa, instructions, memory, seconds)
    result: Any = lens.run(
        dims(grid), dims(block), dims(cluster), shared, bytes(parameters), pointers, buffers, units, options, b""
    )
    return dict(result)


def body(lines: str, parameters: str = ".param .u64 p0", before: str = "") -> str:
    """A kernel k with a few registers of each kind around some lines of PTX."""
    registers = ".reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %d<40>; .reg .pred %p<9>; .reg .f32 %f<9>;"
    return f"{HEAD}{before}\n.visible .entry k({parameters}) {{\n{registers}\n{lines}\nret;\n}}\n"


def kinds(result: dict[str, Any]) -> dict[str, int]:
    """The findings: lanes of each kind."""
    found: dict[str, int] = {}
    for row in result["findings"]:
        found[row["kind"]] = found.get(row["kind"], 0) + row["lanes"]
    return found
