"""A grid over the workers of a concurrent.futures executor: each executes a range of blocks on memory of its own."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .arguments import Buffer, Layout
from .errors import UsageError
from .pattern import Row, joined_patterns

if TYPE_CHECKING:
    from .kernel import Kernel, Launch

Bytes = NDArray[np.uint8]
Change = tuple[int, Bytes, Bytes]  # where it begins in the buffer; the bytes; which of them changed
PARTS = 2  # ranges for each worker: blocks may differ in what they cost


def spread(kernel: Kernel, executor: Executor, launch: Launch, layout: Layout, step: int, count: int) -> dict[str, Any]:
    """Executes `count` units of a grid, `step` apart, in ranges; the results together, buffers included.

    Counters are sums over blocks, so that they are those of a run in one piece.
    """
    memory = [view(buffer) for buffer in layout.buffers]
    parts = min(count, PARTS * workers_of(executor))
    edges = [count * i // parts for i in range(parts + 1)]
    futures = [
        executor.submit(
            part,
            kernel,
            launch,
            bytes(layout.block),
            layout.pointers,
            layout.buffers,
            memory,
            (low * step, step, high - low),
        )
        for low, high in pairwise(edges)
    ]
    try:
        results = [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    refuse_talk(kernel, layout, [result for result, _ in results])
    for _, changes in results:
        for target, change in zip(memory, changes, strict=True):
            if change is not None:
                at, data, changed = change
                np.copyto(target[at : at + len(data)], data, where=changed.view(bool))
    return joined([result for result, _ in results])


MET_BOTH = 3  # GM_MET_BOTH


def refuse_talk(kernel: Kernel, layout: Layout, results: Sequence[dict[str, Any]]) -> None:
    """Raises UsageError where blocks read by volatile loads what others write: parts would not see one another."""
    names = [f"the array {buffer.name}" for buffer in layout.buffers] + ["a variable of the module"]
    for name, *met in zip(names, *(result["met"] for result in results if result["met"]), strict=False):
        if any(met) and reduce(or_, met) == MET_BOTH:
            raise UsageError(
                f"{kernel.name}: its blocks may depend on one another: {kernel.listens} reads {name}, which they "
                "write; so they cannot be spread over an executor: leave it out"
            )


def workers_of(executor: Executor) -> int:
    """How many workers an executor has, as far as it tells: a pool, or a Dask client (or its executor)."""
    cores = getattr(getattr(executor, "_client", executor), "ncores", None)
    if cores is not None:
        return max(int(sum(cores().values())), 1)
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def view(buffer: Buffer) -> Bytes:
    """The bytes of a buffer of this process."""
    memory = (ctypes.c_uint8 * buffer.size).from_address(buffer.address)
    return np.ctypeslib.as_array(memory)


def part(
    kernel: Kernel,
    launch: Launch,
    block: bytes,
    pointers: list[tuple[int, int, int]],
    buffers: Sequence[Buffer],
    memory: Sequence[Bytes],
    units: tuple[int, int, int],
) -> tuple[dict[str, Any], list[Change | None]]:
    """What a worker does: a run on copies of the buffers. Returns the result, and what changed in each buffer."""
    own = [array.copy() for array in memory]
    placed = [
        Buffer(int(array.ctypes.data), buffer.size, buffer.name, buffer.read_only)
        for buffer, array in zip(buffers, own, strict=True)
    ]
    result = kernel._run(launch, Layout(bytearray(block), list(pointers), placed), units)
    return result, [change(after, before) for after, before in zip(own, memory, strict=True)]


def change(after: Bytes, before: Bytes) -> Change | None:
    """The stretch in which two arrays differ; None where they do not."""
    differs = after != before
    where = np.flatnonzero(differs)
    if len(where) == 0:
        return None
    low, high = int(where[0]), int(where[-1]) + 1
    return low, after[low:high], differs[low:high].view(np.uint8)


def joined(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The results of parts as one: sums, and the findings of all."""
    whole = dict(results[0])
    for name in ("instructions", "thread_instructions", "blocks", "left_out"):
        whole[name] = sum(result[name] for result in results)
    for name in ("counts", "ran"):
        whole[name] = sum(result[name] for result in results)
    early = next((result for result in results if result["ended"]), results[0])
    whole["ended"], whole["why"] = early["ended"], early["why"]
    whole["patterns"] = joined_patterns([Row(*row) for result in results for row in result["patterns"]])
    whole["findings"] = joined_findings([row for result in results for row in result["findings"]])
    return whole


EXAMPLES = 4  # GM_FINDING_EXAMPLES


def joined_findings(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows about the same instructions as one."""
    merged: dict[Any, dict[str, Any]] = {}
    for row in rows:
        place, other = ((each or {}).get("line", 0) for each in (row["place"], row["other"]))
        key = (row["kind"], place, other, row["space"], row["writes"], row["bytes"])
        if key not in merged:
            merged[key] = {**row, "examples": list(row["examples"])}
            continue
        known = merged[key]
        known["lanes"] += row["lanes"]
        known["times"] += row["times"]
        known["examples"] = sorted(known["examples"] + list(row["examples"]), key=first_of)[:EXAMPLES]
    return list(merged.values())


def first_of(example: dict[str, Any]) -> tuple[Any, ...]:
    """What examples are ordered by: the block, then the thread, as the grid counts them."""
    return tuple(reversed(example["block"])), tuple(reversed(example["thread"]))
