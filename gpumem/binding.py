"""Binds the memory instructions of a PTX kernel to those of its machine code, so that what is counted is what runs.

The lens executes PTX. ptxas may merge neighbouring loads into a wide one, drop a load whose value it has already, turn
an `atom` without a result into `red`, or let one lane add for the whole warp. Each machine instruction carries the line
of the PTX that it comes from; where everything can be told from that, the counts made from PTX are those of the machine
code. Where it cannot, the lines are named: no guess is passed on as a count.
"""

from __future__ import annotations

import os
import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import cubin, ptxas
from .errors import UsageError
from .occupancy import fit
from .ptxas import Resources
from .sass import (
    Access,
    Instruction,
    UnknownInstructionError,
    differences,
    only_entry,
    ptx_accesses,
    sass_accesses,
    sass_instructions,
)
from .trace import EXACT

SETTING = "GPUMEM_MACHINE_CODE"
# gm_access: how the lens counts an atomic that the machine code has.
_ACCESS = {"load": 0, "store": 1, "atom": 2, "red": 2, "cas": 3, "inc": 4}
# Spaces that a generic access of PTX may turn out to have.
_GENERIC = ("global", "shared", "local", "generic")


@dataclass(frozen=True)
class Counted:
    """How one memory instruction of the PTX is to be counted."""

    line: int
    what: str
    """The instruction, as in "ld.shared 4"."""
    bytes: int | None
    """Of a lane. 0: not at all, because another instruction fetches it or the value is known; None: as written."""
    kind: str
    """What the machine executes, as in "red.global.add"."""
    elected: bool = False
    """One of the active lanes does it for all."""
    counter: bool = False
    """ATOMS.POPC.INC: lanes of one word are served together, as by a store."""


@dataclass(frozen=True)
class Binding:
    """How each memory instruction of a kernel is to be counted, and whether that is all that the machine does."""

    arch: str
    sites: list[Counted]
    changes: list[str] = field(default_factory=list)
    """What ptxas made of the PTX, a line each; counted so."""
    unbound: list[str] = field(default_factory=list)
    """What could not be bound, with the lines of the PTX concerned; empty: the counts are exact."""
    resources: Resources | None = None
    thread_bytes: int = 0
    """Of global memory that one thread keeps under way."""

    def fit(self, threads: int, dynamic_shared: int) -> dict[str, Any]:
        """What a launch of so many threads a block takes of a multiprocessor."""
        return fit(self.arch, threads, self.resources, dynamic_shared, self.thread_bytes) if self.resources else {}

    @property
    def exact(self) -> bool:
        """Whether the counts are those of the machine code."""
        return not self.unbound

    def __str__(self) -> str:
        """One word, and for approximate counts the reasons."""
        return EXACT if self.exact else "approximate: " + "; ".join(self.unbound)


def bind(ptx: str, kernel: str, arch: str | None = None) -> Binding:
    """Assembles a PTX text and binds one kernel's memory instructions to its machine code.

    Parameters
    ----------
    ptx
        The whole text.
    kernel
        The entry's name.
    arch
        The chip, as `sm_90`; what the text is written for by default.

    Returns
    -------
    Binding
        `sites` in the order of the text, functions other than entries included.

    Raises
    ------
    UsageError
        There is no ptxas, or the text has no such kernel.

    """
    ptx = only_entry(ptx, kernel)
    code = ptxas.assemble(ptx, arch)
    functions = machine_code(code)
    written = ptx_accesses(ptx)
    if kernel not in written or kernel not in functions:
        raise UsageError(f"the PTX has no kernel {kernel!r}")
    others = [name for name in written if name not in code.resources]
    sites = [each for name in written if name == kernel or name in others for each in written[name]]
    try:
        made = [
            each for name in functions if name == kernel or name in others for each in sass_accesses(functions[name])
        ]
    except UnknownInstructionError as unknown:
        return Binding(code.arch, [_as_written(site) for site in sites], [], [f"machine instruction {unknown}"])
    bound = bind_accesses(sites, made, code.arch)
    in_flight = cubin.bytes_in_flight(code.cubin, code.arch, kernel)
    return replace(bound, resources=code.resources[kernel], thread_bytes=in_flight)


def machine_code(code: ptxas.MachineCode) -> dict[str, list[Instruction]]:
    """The instructions of each function: by nvdisasm where it is, else as this package reads them itself."""
    if ptxas.tool("nvdisasm"):
        return sass_instructions(ptxas.disassemble(code.cubin))
    return cubin.functions(code.cubin, code.arch)


def what_stands(binding: Binding | None, why_not: str = "") -> str:
    """How far counts can be relied on, in words.

    >>> what_stands(None)
    'as the PTX is written: not compared with machine code'
    """
    if binding is None:
        return f"as the PTX is written: {why_not or 'not compared with machine code'}"
    return str(binding)


def _as_written(site: Access) -> Counted:
    return Counted(site.line, site.what, site.bytes or None, site.kind)


def wanted(asked: bool | None) -> bool:
    """Whether to bind: as asked, else where there is ptxas and GPUMEM_MACHINE_CODE is not 0."""
    if asked is not None:
        return asked
    return os.environ.get(SETTING, "") != "0" and ptxas.tool("ptxas") is not None


def for_lens(binding: Binding, sites: Sequence[Sequence[Any]]) -> tuple[bytes, list[Counted | None]]:
    """How the lens is to count each of its sites, as gm_lens_counted rows and in words.

    Parameters
    ----------
    binding
        Of the same text.
    sites
        The lens's: rows of opcode, file, line of the PTX, source line, kind, space, bytes, calls.

    Returns
    -------
    rows, bound
        None where a site is no access of the binding's, such as a load of a constant.

    """
    left: dict[int, list[Counted]] = defaultdict(list)
    for each in binding.sites:
        left[each.line].append(each)
    bound: list[Counted | None] = [left[line].pop(0) if left[line] else None for _, _, line, *_ in sites]
    rows = []
    for (opcode, _, _, _, kind, _, width, *_), machine in zip(sites, bound, strict=True):
        parts = opcode.split(".")
        access = _ACCESS["cas" if kind == "atom" and "cas" in parts else kind if kind in _ACCESS else "load"]
        if machine and machine.counter:
            access = _ACCESS["inc"]
        counted = width if machine is None or machine.bytes is None else machine.bytes
        rows.append(struct.pack("HBB", counted, access, bool(machine and machine.elected)))
    return b"".join(rows), bound


def bind_accesses(sites: list[Access], made: list[Access], arch: str) -> Binding:
    """The same from the two lists of accesses; without lines only whether they are equal."""
    if made and not any(each.line for each in made):
        more = differences(Counter(a.what for a in sites), Counter(a.what for a in made))
        return Binding(arch, [_as_written(site) for site in sites], [], [more] if more else [])
    return _Binder(sites, made, arch).bound()


def _alike(site: Access, made: Access) -> bool:
    """Whether the machine's access is of the kind that the PTX asks for, leaving the width aside."""
    wanted, got = site.kind.split("."), made.kind.split(".")
    if wanted[0] == "atom" and got[0] == "red":
        got[0] = "atom"
    if len(wanted) > 1 and wanted[1] == "generic" and got[1:2] and got[1] in _GENERIC:
        got[1] = "generic"
    return wanted == got


class _Binder:
    def __init__(self, sites: list[Access], made: list[Access], arch: str) -> None:
        self._sites, self._arch = sites, arch
        self._made: dict[int, list[Access]] = defaultdict(list)
        for each in made:
            self._made[each.line].append(each)
        self._counted: dict[int, Counted] = {}  # by index of the site
        self._changes: list[str] = []
        self._unbound: list[str] = []

    def bound(self) -> Binding:
        lines = {site.line for site in self._sites}
        for index, site in enumerate(self._sites):
            if self._made[site.line]:
                self._bind_line(index, site)
        for line in sorted(self._made.keys() - lines):
            for what, times in sorted(Counter(each.what for each in self._made[line]).items()):
                self._unbound.append(f"{times} x {what} at line {line}, where the PTX accesses no memory")
        self._leave_out([index for index in range(len(self._sites)) if index not in self._counted])
        ordered = [self._counted[index] for index in range(len(self._sites))]
        return Binding(self._arch, ordered, self._changes, self._unbound)

    def _leave_out(self, missing: list[int]) -> None:
        """Sites without an instruction are dropped ones if all instructions are told; else they may be anywhere."""
        clear = not self._unbound
        for index in missing:
            site = self._sites[index]
            if clear:
                self._change(site, "has no instruction of its own: not counted")
                self._counted[index] = Counted(site.line, site.what, 0, site.kind)
            else:
                self._unbound.append(f"line {site.line}: {site.what} has no instruction of its own")
                self._counted[index] = _as_written(site)

    def _change(self, site: Access, said: str) -> None:
        self._changes.append(f"line {site.line}: {site.what} {said}")

    def _bind_line(self, index: int, site: Access) -> None:
        if index in self._counted:
            return
        here = [i for i, other in enumerate(self._sites) if other.line == site.line]
        made = self._made[site.line]
        if len(here) > 1:
            self._bind_several(here, made)
            return
        strange = [each for each in made if not _alike(site, each)]
        widths = {each.bytes for each in made if _alike(site, each)}
        if strange or len(widths) != 1:
            said = ", ".join(f"{n} x {what}" for what, n in sorted(Counter(each.what for each in made).items()))
            self._unbound.append(f"line {site.line}: {site.what} became {said}")
            self._counted[index] = _as_written(site)
        elif widths == {site.bytes}:
            self._keep(index, site, made[0])
        else:
            self._fuse(index, site, made[0])

    def _bind_several(self, here: list[int], made: list[Access]) -> None:
        """Statements on one line of the text: bound only if the machine has the very same ones."""
        sites = [self._sites[i] for i in here]
        if more := differences(Counter(s.what for s in sites), Counter(m.what for m in made)):
            self._unbound.append(f"line {sites[0].line}: {more}")
        for i in here:
            self._counted[i] = _as_written(self._sites[i])

    def _keep(self, index: int, site: Access, made: Access) -> None:
        if made.elected:
            self._change(site, "is done by one lane for the warp")
        elif made.counter:
            self._change(site, "counts the lanes of each word at once")
        elif made.kind != site.kind:
            self._change(site, f"became {made.what}")
        self._counted[index] = Counted(site.line, site.what, site.bytes or None, made.kind, made.elected, made.counter)

    def _fuse(self, index: int, site: Access, made: Access) -> None:
        """A wider access stands for neighbours of the same base, all without an instruction of their own."""
        window = self._neighbours(site, made.bytes)
        if window is None:
            self._unbound.append(f"line {site.line}: {site.what} became {made.what}, with which others is not clear")
            self._counted[index] = _as_written(site)
            return
        lines = ", ".join(str(self._sites[i].line) for i in window)
        self._changes.append(f"lines {lines}: {len(window)} x {site.what} became {made.what}")
        for i in window:
            first = i == window[0]
            self._counted[i] = Counted(
                self._sites[i].line, self._sites[i].what, made.bytes if first else 0, made.kind, made.elected
            )

    def _neighbours(self, site: Access, wanted: int) -> list[int] | None:
        """The sites that together are `wanted` bytes from a multiple of them on, lowest address first."""
        free = {
            other.offset: i
            for i, other in enumerate(self._sites)
            if other is site
            or (
                i not in self._counted
                and not self._made[other.line]
                and (other.kind, other.base) == (site.kind, site.base)
            )
        }
        windows = []
        for start in sorted(free):
            covered, at = [], start
            while at < start + wanted and at in free:
                covered.append(free[at])
                at += self._sites[free[at]].bytes
            if at == start + wanted and any(self._sites[i] is site for i in covered):
                windows.append((start % wanted != 0, covered))
        windows.sort()
        if not windows or (len(windows) > 1 and windows[0][0] == windows[1][0]):
            return None
        return windows[0][1]
