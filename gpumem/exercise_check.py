"""Checks a solution: a kernel by executing it on random data of several sizes, answers against executed truth."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .compiler import CompileError, find_nvcc, is_ptx, load_nvrtc
from .errors import LimitError, UsageError
from .exercises import Case, Exercise, Most, Question, exercise
from .kernel import Kernel
from .table import Column, Shown, Table
from .trace import Site, Trace, per

if TYPE_CHECKING:
    from .exercises import Array

INSTRUCTIONS = 5_000_000  # of one launch: a hundred times what a slow right one needs
SECONDS = 60.0
MEMORY = 256 << 20
WIDE = 16
FEW = 8  # launches that are named
LONGEST = 1 << 20  # characters of a submission
# What a compiler would read besides: devices that never end, and other people's files.
_OUTSIDE = re.compile(r"^[ \t]*#[ \t]*(?:include|embed)\b(?![ \t]*<\w[\w.]*(?:/\w[\w.]*)*>)[^\n]*", re.MULTILINE)
_ANSWER = re.compile(r"^[ \t]*(?://|#)?[ \t]*answer[ \t]+(\w+)[ \t]*=[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)

FAULTS = {
    "compile": "it does not compile, or cannot be executed",
    "signature": "the kernel does not take what the exercise gives it",
    "launch": "no GPU would take the launch",
    "limit": "it does not come to an end",
    "hazard": "it would go wrong on a GPU",
    "result": "the result is wrong",
    "counters": "it costs more than it may",
    "answer": "an answer is missing or wrong",
}


@dataclass(frozen=True)
class Fault:
    """What is wrong: a key of FAULTS, the place where it is known, the launch, and the evidence."""

    kind: str
    text: str
    where: str = ""
    case: str = ""

    def __str__(self) -> str:
        return f"{self.where + ': ' if self.where else ''}{self.text}{f' ({self.case})' if self.case else ''}"


@dataclass(frozen=True, repr=False)
class Checked(Shown):
    """What became of a solution. `done` says what was found right; seed: of the random data."""

    exercise: Exercise
    faults: tuple[Fault, ...]
    done: tuple[str, ...]
    seed: int

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "schema": "gpumem.check/1",
            "exercise": self.exercise.number,
            "skill": self.exercise.skill,
            "passed": self.passed,
            "faults": [asdict(fault) for fault in self.faults],
            "done": list(self.done),
            "seed": self.seed,
        }

    def tables(self) -> list[Table]:
        """What is wrong, or that nothing is."""
        ended = "passed" if self.passed else "not yet"
        columns = (Column("", "left"), Column("", "left", prose=True))
        rows = [(fault.kind, str(fault)) for fault in self.faults] + [("right", said) for said in self.done]
        notes = [] if self.passed else [f"Random data of seed {self.seed}: --seed {self.seed} gives the same again."]
        if not self.exercise.cases:
            notes = []
        return [Table(f"Exercise {self.exercise.number}, {self.exercise.skill}: {ended}", columns, rows, notes)]


def check(number: int, text: str, file: str = "kernel.cu", *, arch: str = "sm_90", seed: int | None = None) -> Checked:
    """Checks a solution of an exercise.

    text: CUDA C or PTX; of exercises that ask questions, a text with lines "answer NAME = VALUE". file: what the text
    is called in reports. seed: of the random data; by default another one each time.

    Raises UsageError for an exercise that there is not, and where CUDA C cannot be compiled for want of a compiler.

    >>> check(2, "answer a = 4").faults[0].text
    'answer b is missing'
    """
    asked = exercise(number)
    chosen = int(np.random.default_rng().integers(1 << 32)) if seed is None else seed
    if asked.cases is None:
        return Checked(asked, *answered(asked, text, file), chosen)
    return Checked(asked, *executed(asked, text, file, arch, chosen), chosen)


# --- answers


def answered(asked: Exercise, text: str, file: str) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """What is wrong with the answers of a text, and which are right."""
    given = {match[1]: match[2] for match in _ANSWER.finditer(text)}
    trace = asked.trace()
    faults, right = [], []
    for question in asked.questions:
        said = given.get(question.name, "")
        if said in ("", "?"):
            faults.append(Fault("answer", f"answer {question.name} is missing"))
        elif not agrees(question, said, question.truth(trace, asked)):
            faults.append(
                Fault("answer", f"answer {question.name} = {said} is wrong{evidence(trace, asked, question)}")
            )
        else:
            right.append(question.name)
    return tuple(faults), (f"answers {', '.join(right)}",) if right else ()


def agrees(question: Question, said: str, truth: str | float) -> bool:
    """Whether an answer is the truth."""
    if isinstance(truth, str):
        return said.lower() == truth
    try:
        return math.isclose(float(said.rstrip("%")), truth, rel_tol=0, abs_tol=question.tolerance)
    except ValueError:
        return False


def evidence(trace: Trace, asked: Exercise, question: Question) -> str:
    """The line in question, and where its lanes go; not the answer."""
    lines = asked.starter.splitlines()
    at = next((i for i, text in enumerate(lines, 1) if text.endswith(f"// ({question.name})")), 0)
    if not at:
        return ": work it out from the table of `gpumem exercises 9`"
    quoted = lines[at - 1].split("//")[0].strip()
    said = f": line {at}, {quoted}"
    site = next(site for site in trace.sites if site.line == at)
    for pattern in site.patterns[:1]:
        places = [str(address) for address in pattern.addresses if address is not None]
        said += f" accesses {site.width} bytes at {', '.join(places[:4])}, ... {places[-1]}"
    return said


# --- kernels


def executed(asked: Exercise, text: str, file: str, arch: str, seed: int) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """What is wrong with a kernel, and what is right: the first launch that goes wrong ends it."""
    made = loaded(asked, text, file, arch)
    if isinstance(made, Fault):
        return (made,), ()
    assert asked.cases is not None
    done: list[str] = []
    costs: list[Fault] = []
    for case in asked.cases(np.random.default_rng(seed)):
        trace = launched(made, case)
        if isinstance(trace, Fault):
            return (trace,), said_of(done)
        faults = wrong(trace, case)
        if faults:
            return faults, said_of(done)
        done.append(case.label)
        if case.most and not costs:
            costs = list(too_much(trace, case, case.most))
    return tuple(costs), said_of(done)


def said_of(done: Sequence[str]) -> tuple[str, ...]:
    """Which launches gave the right result."""
    if not done:
        return ()
    few = done if len(done) <= FEW else [*done[: FEW - 2], "...", done[-1]]
    return (f"the results of {len(done)} launches ({'; '.join(few)})",)


def loaded(asked: Exercise, text: str, file: str, arch: str) -> Kernel | Fault:
    """The kernel of a submission, or why there is none."""
    if len(text) > LONGEST:
        return Fault("compile", f"the text has {len(text):,} characters: {LONGEST:,} are allowed")
    if not is_ptx(text) and (outside := _OUTSIDE.search(text)):
        return Fault(
            "compile", f"{outside[0].strip()}: an exercise includes the toolkit's headers by their names alone"
        )
    if not is_ptx(text) and load_nvrtc()[0] is None and find_nvcc()[0] is None:
        Kernel(text, arch=arch, file=file)  # raises UsageError: it says what to install
    try:
        kernel = Kernel(text, asked.kernel, arch, file=file)
    except CompileError as error:
        return Fault("compile", str(error))
    except (UsageError, ValueError, NotImplementedError) as error:
        first = str(error).strip().splitlines()[0]
        return Fault("compile", first)
    except RecursionError as error:  # a text that is nested without end
        return Fault("compile", f"the text cannot be read: {error}")
    types = [re.sub("^[sb]", "u", parameter.type) for parameter in kernel.parameters]
    if types != asked.parameters.split():
        return Fault(
            "signature",
            f"{asked.kernel} takes {len(types)} parameters ({' '.join(types)}), the exercise gives "
            f"{asked.parameters}: keep the starter's",
        )
    return kernel


def launched(kernel: Kernel, case: Case) -> Trace | Fault:
    """The trace of a launch, or why there is none."""
    try:
        return kernel.trace(
            case.grid,
            case.block,
            *case.arguments.values(),
            names=tuple(case.arguments),
            instructions=INSTRUCTIONS,
            seconds=SECONDS,
            memory=MEMORY,
            machine_code=False,
        )
    except LimitError as error:
        return Fault("limit", f"stopped: {error.trace.why}", case=case.label)
    except (ValueError, TypeError, OverflowError) as error:
        return Fault("launch", str(error), case=case.label)
    except (RuntimeError, MemoryError) as error:
        return Fault("limit", str(error) or type(error).__name__, case=case.label)


def wrong(trace: Trace, case: Case) -> tuple[Fault, ...]:
    """Hazards; without any, wrong results."""
    if trace.findings:
        each = {(found.kind, found.where): found for found in reversed(trace.findings)}
        return tuple(
            Fault("hazard", str(found).removeprefix(f"{found.where}: "), found.where, case.label)
            for found in list(reversed(each.values()))[:3]
        )
    if trace.ended:
        return (Fault("limit", trace.why, case=case.label),)
    return tuple(fault for name, pair in case.results.items() for fault in differences(trace, name, *pair, case))


def differences(trace: Trace, name: str, got: Array, wanted: Array, case: Case) -> tuple[Fault, ...]:
    """The first item that is not what it should be, and where it may have been stored."""
    at = np.flatnonzero(got != wanted)
    if not len(at):
        return ()
    first = int(at[0])
    text = (
        f"{len(at):,} of {got.size:,} items of {name} are wrong, the first of them {name}[{first - case.start}]: "
        f"{got[first]:g}, and it should be {wanted[first]:g}"
    )
    stores = [
        site
        for site in trace.sites
        if site.kind in ("store", "atom", "red") and any(row.buffer == name for row in site.patterns)
    ]
    places = list(dict.fromkeys(site.where for site in stores))
    if not places:
        text += f"; nothing was stored to {name}"
    elif len(places) > 1:
        text += f"; it is stored to in {', '.join(places)}"
    return (Fault("result", text, places[0] if len(places) == 1 else "", case.label),)


def too_much(trace: Trace, case: Case, most: Most) -> list[Fault]:
    """Costs beyond what is allowed, with the line that has most of each."""
    faults = []
    loads = [site for site in trace.sites if site.kind in ("load", "copy") and site.requests]
    stores = [site for site in trace.sites if site.kind in ("store", "atom", "red") and site.requests]
    for sites, what, allowed, requests in (
        (loads, "loads", most.load_sectors, most.load_requests),
        (stores, "stores", most.store_sectors, most.store_requests),
    ):
        for counter, limit in (("sectors", allowed), ("requests", requests)):
            count = sum(getattr(site, counter) for site in sites)
            if limit is not None and count > limit:
                site = max(sites, key=excess_of(counter))
                spread = counter == "sectors" and sum(s.sectors - s.sectors_ideal for s in sites) > 0
                why = described(site) if spread else f"{site.opcode} is executed {lanes_of(site)}"
                text = f"{what} take {count:,} {counter}, {limit:,} would do; here {why}"
                faults.append(Fault("counters", text, site.where, case.label))
                break
    shared = [site for site in trace.sites if site.conflicts > 0]
    if sum(site.conflicts for site in shared) > most.conflicts:
        site = max(shared, key=lambda each: each.conflicts)
        faults.append(
            Fault(
                "counters",
                f"{sum(each.conflicts for each in shared):,} bank conflicts, {most.conflicts} are allowed; here "
                f"{described(site)}",
                site.where,
                case.label,
            )
        )
    if most.wide and not any(fault.kind == "counters" for fault in faults):
        faults += narrow([*loads, *stores], case, most)
    return faults


def narrow(sites: Sequence[Site], case: Case, most: Most) -> list[Fault]:
    """Whether too few bytes are moved by wide accesses."""
    moved = {wide: sum(s.lanes * s.width for s in sites if (s.width >= WIDE) == wide) for wide in (False, True)}
    part = moved[True] / max(sum(moved.values()), 1)
    if part >= most.wide:
        return []
    site = max((s for s in sites if s.width < WIDE), key=lambda s: s.lanes * s.width)
    text = f"{part:.0%} of the bytes are moved 16 at a time, {most.wide:.0%} are asked for; here {described(site)}"
    return [Fault("counters", text, site.where, case.label)]


def excess_of(counter: str) -> Callable[[Site], float]:
    """What a site costs beyond its ideal; of requests, those whose lanes are not all at work."""
    if counter == "sectors":
        return lambda site: site.sectors - site.sectors_ideal
    return lambda site: site.requests - site.lanes / 32


def lanes_of(site: Site) -> str:
    """How often an instruction is executed, and by how many lanes."""
    return f"{site.executions:,} times, with {per(site.lanes, site.executions)} lanes of {site.width} bytes"


def described(site: Site) -> str:
    """An instruction and what it costs each time."""
    lanes = f"{per(site.lanes, site.executions)} lanes of {site.width} bytes"
    if site.requests:
        sectors = per(site.sectors, site.requests)
        return f"{site.opcode} takes {sectors} sectors for {lanes}, {per(site.sectors_ideal, site.requests)} would do"
    ideal = per(site.wavefronts_ideal, site.shared)
    return f"{site.opcode} takes {per(site.wavefronts, site.shared)} wavefronts for {lanes}, {ideal} would do"


def read(path: Path) -> str:
    """A solution's text. Raises UsageError for a file that cannot be read or is no text."""
    try:
        return path.read_text()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text: give CUDA C, PTX or answers") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
