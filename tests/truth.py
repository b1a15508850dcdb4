"""Launches that were measured, and kernels of the same kind, for the lens to execute: PTX, arguments, counters."""

import base64
import functools
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import gpumem

DATA = Path(__file__).parent / "data"
TRUTH, PTX = DATA / "truth", DATA / "ptx"
SCALARS = {"u32": np.uint32, "u64": np.uint64, "f32": np.uint32, "f64": np.uint64}  # bits, whatever the type
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
EXECUTED = "smsp__sass_inst_executed_op_{}_{}.sum"
SHARED = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
NOISY_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"  # with the noise of arbitration between warps


@functools.cache
def kernel(source: str, name: str | None = None) -> gpumem.Kernel:
    """A kernel of tests/data/ptx/truth_SOURCE.ptx."""
    return gpumem.Kernel((PTX / f"truth_{source}.ptx").read_text(), name, file=f"truth_{source}.ptx")


def rows_of(file: str) -> list[dict[str, Any]]:
    """The rows of a file of tests/data/truth, counters by name."""
    held = json.loads((TRUTH / file).read_text())
    return [{**row, "counters": dict(zip(held["counters"], row["counters"], strict=True))} for row in held["rows"]]


def bytes_of(buffer: int | str) -> np.ndarray:
    """A buffer's contents: so many zeros, or what is packed."""
    if isinstance(buffer, int):
        return np.zeros(buffer, np.uint8)
    return np.frombuffer(bytearray(zlib.decompress(base64.b64decode(buffer))), np.uint8)


def counters_of(trace: gpumem.Trace) -> dict[str, int]:
    """A trace's counters."""
    return dict(trace.counters)
