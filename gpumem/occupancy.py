"""How many warps of a launch fit on a multiprocessor, and what limits them.

The limits are those of the tables "Technical Specifications per Compute Capability" in NVIDIA's CUDA C++ Programming
Guide; registers are given out to warps in units of 256, to four warps at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import UsageError
from .ptxas import Resources

WARP = 32
REGISTERS = 65536
REGISTER_UNIT = 256
WARP_UNIT = 4
KIB = 1024
USUAL_SHARED = 48 * KIB
"""Shared memory of a block that a launch gets without asking; static shared memory has to fit into it."""
OPT_IN = "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, {})"


@dataclass(frozen=True)
class Chip:
    """What one multiprocessor of a compute capability has."""

    warps: int
    blocks: int
    shared_bytes: int
    shared_most: int
    """Of one block, if it asks for more than the usual 48 KiB."""
    shared_unit: int
    shared_reserved: int
    """Taken by the system for each block."""


def _chip(warps: int, blocks: int, shared: int, most: int, unit: int = 128, reserved: int = KIB) -> Chip:
    return Chip(warps, blocks, shared * KIB, most * KIB, unit, reserved)


CHIPS = {
    70: _chip(64, 32, 96, 96, 256, 0),
    75: _chip(32, 16, 64, 64, 256, 0),
    80: _chip(64, 32, 164, 163),
    86: _chip(48, 16, 100, 99),
    87: _chip(48, 16, 164, 163),
    89: _chip(48, 24, 100, 99),
    90: _chip(64, 32, 228, 227),
    100: _chip(64, 32, 228, 227),
    103: _chip(64, 32, 228, 227),
    120: _chip(48, 24, 100, 99),
    121: _chip(48, 24, 100, 99),
}

# Bytes that have to be under way on one multiprocessor for the memory to be busy: its share of bandwidth times latency.
# About 48 KB on an H200.
NEEDED_IN_FLIGHT = {90: 48 * KIB}


@dataclass(frozen=True)
class Occupancy:
    """How much of a multiprocessor a launch can fill."""

    blocks: int
    """Resident on one multiprocessor at the same time."""
    warps: int
    fraction: float
    """Of the warps that the multiprocessor can hold."""
    limits: tuple[str, ...]
    """What allows no more blocks: "warps", "blocks", "registers", "shared memory"."""


def capability(arch: str) -> int:
    """The number of a chip such as `sm_90a`."""
    return int(re.sub(r"\D", "", arch))


def occupancy(arch: str, threads: int, resources: Resources, dynamic_shared: int = 0) -> Occupancy:
    """The occupancy of a launch.

    Parameters
    ----------
    arch
        The chip, as `sm_90`.
    threads
        Of a block.
    resources
        Of the kernel, from ptxas.
    dynamic_shared
        Bytes that the launch adds to the static ones.

    Raises
    ------
    UsageError
        The chip is not in the table, or no block fits; the limit is named.

    Examples
    --------
    >>> from gpumem.ptxas import Resources
    >>> occupancy("sm_90", 256, Resources(32, 0, 0, 0, 4224, 1))
    Occupancy(blocks=8, warps=64, fraction=1.0, limits=('warps', 'registers'))

    """
    number = capability(arch)
    if number not in CHIPS:
        raise UsageError(f"no table for {arch}: there are {', '.join(f'sm_{n}' for n in CHIPS)}")
    chip, warps = CHIPS[number], _up(threads, WARP) // WARP
    room = _most_threads(resources.registers) // WARP if resources.registers else chip.warps
    shared = resources.shared_bytes + dynamic_shared
    if not 1 <= threads <= 1024:
        raise UsageError(f"{threads} threads in a block: there can be 1 to 1024")
    if shared > chip.shared_most:
        raise UsageError(f"{shared} bytes of shared memory a block: {arch} has {chip.shared_most}")
    if room < warps:
        raise UsageError(
            f"{resources.registers} registers a thread: at most {room * WARP} threads fit into a block, not {threads}"
        )
    block_shared = _up(shared, chip.shared_unit) + chip.shared_reserved
    fit = {
        "warps": chip.warps // warps,
        "blocks": chip.blocks,
        "registers": room // warps,
        "shared memory": chip.shared_bytes // block_shared if block_shared else chip.blocks,
    }
    blocks = min(fit.values())
    limits = tuple(name for name, most in fit.items() if most == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / chip.warps, limits)


def launch_notes(
    arch: str, threads: int, static: int, dynamic: int, resources: Resources | None, opt_in: bool | None
) -> tuple[str, ...]:
    """What a launch needs beside itself, in words, where it can be at all.

    Parameters
    ----------
    arch
        The chip, as `sm_90`.
    threads
        Of a block.
    static, dynamic
        Bytes of shared memory of a block.
    resources
        Of the kernel, from ptxas, where they are known.
    opt_in
        Whether the kernel may use more than 48 KiB of shared memory: True where the program asks for it
        (`cudaFuncSetAttribute`), False where it does not, None where that is not known.

    Raises
    ------
    UsageError
        CUDA would refuse the launch; its error is named.

    Examples
    --------
    >>> launch_notes("sm_86", 256, 1024, 48 * 1024, None, True)
    ()
    >>> launch_notes("sm_86", 256, 1024, 100 * 1024, None, True)
    Traceback (most recent call last):
    gpumem.errors.UsageError: 1024 bytes of static and 102400 of dynamic shared memory: a block of sm_86 has at most \
101376 together (CUDA's error 1, invalid value)

    """
    chip, together = CHIPS.get(capability(arch)), static + dynamic
    both = f"{static} bytes of static and {dynamic} of dynamic shared memory"
    if static > USUAL_SHARED:
        raise UsageError(f"{static} bytes of static shared memory: at most {USUAL_SHARED}, more has to be dynamic")
    if chip and together > chip.shared_most:
        raise UsageError(
            f"{both}: a block of {arch} has at most {chip.shared_most} together (CUDA's error 1, invalid value)"
        )
    if resources is not None and (most := _most_threads(resources.registers)) < threads:
        raise UsageError(
            f"{resources.registers} registers a thread: at most {most} threads fit into a block, not {threads} (CUDA's "
            "error 701, too many resources requested for launch): __launch_bounds__ makes the compiler use fewer"
        )
    if together <= USUAL_SHARED or opt_in:
        return ()
    if opt_in is False:
        raise UsageError(
            f"{both}: more than {USUAL_SHARED} together need {OPT_IN.format(dynamic)} before the launch (CUDA's error "
            "1, invalid value)"
        )
    most_text = f"; {arch} has at most {chip.shared_most}" if chip else ""
    return (
        f"{both} are more than {USUAL_SHARED}: the program must call {OPT_IN.format(dynamic)} before this launch, or "
        f"CUDA refuses it{most_text}.",
    )


def _most_threads(registers: int) -> int:
    """Of a block, by the registers that a thread takes: they are given out to warps, in units."""
    each = _up(registers * WARP, REGISTER_UNIT)
    return REGISTERS // each // WARP_UNIT * WARP_UNIT * WARP if each else 1 << 10


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def fit(arch: str, threads: int, resources: Resources, dynamic_shared: int, thread_bytes: int) -> dict[str, Any]:
    """What a launch takes of a multiprocessor, as plain data for a report.

    `thread_bytes` are those of global memory that one thread keeps under way. A chip that is not in the table gives the
    resources alone.
    """
    made: dict[str, Any] = {
        "registers": resources.registers,
        "spill_bytes": resources.spill_store_bytes + resources.spill_load_bytes,
        "stack_bytes": resources.stack_bytes,
        "shared_bytes": resources.shared_bytes + dynamic_shared,
    }
    try:
        held = occupancy(arch, threads, resources, dynamic_shared)
    except UsageError as error:
        return {**made, "why": str(error)}
    made |= {"blocks": held.blocks, "warps": held.warps, "occupancy": held.fraction, "limits": list(held.limits)}
    made["bytes_in_flight"] = thread_bytes * threads * held.blocks
    if needed := NEEDED_IN_FLIGHT.get(capability(arch)):
        made["bytes_needed"] = needed
    return made


def words(made: Mapping[str, Any]) -> str:
    """The same in one sentence.

    >>> words(fit("sm_90", 256, Resources(32, 0, 0, 0, 4224, 1), 0, 16)).split(";")[0]
    '32 registers a thread, 4224 bytes of shared memory a block'
    """
    said = f"{made['registers']} registers a thread, {made['shared_bytes']} bytes of shared memory a block"
    if made["spill_bytes"]:
        said += f", {made['spill_bytes']} bytes spilled to local memory"
    if "why" in made:
        return f"{said}; {made['why']}"
    said += (
        f"; {made['blocks']} blocks on a multiprocessor, {made['occupancy']:.0%} of its warps, limited by "
        f"{' and '.join(made['limits'])}"
    )
    if made["bytes_in_flight"]:
        said += f"; loads keep at most {made['bytes_in_flight']} bytes under way there"
        if "bytes_needed" in made:
            said += f" of about {made['bytes_needed']} that the memory needs"
    return said
