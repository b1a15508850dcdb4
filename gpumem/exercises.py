"""Ten exercises, one for each skill of memory-bound kernels, and what a solution has to be.

Their texts and starters are in gpumem/data/exercises. Kernels are executed by the lens on random data of several sizes
(`gpumem.exercise_check`); questions with a number for an answer are about a kernel that the lens executes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import UsageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from .kernel import Kernel
    from .trace import Site, Trace

Array = np.ndarray[Any, Any]
Random = np.random.Generator
SECTOR = 32
THREADS = 256


@dataclass(frozen=True)
class Most:
    """What a launch may cost at most; None: not looked at. `wide`: the least part of the bytes moved 16 at a time."""

    load_sectors: int
    store_sectors: int
    load_requests: int | None = None
    store_requests: int | None = None
    conflicts: int = 0
    wide: float = 0.0


@dataclass(frozen=True)
class Case:
    """One launch of a submission: arguments by name, what an array must hold afterwards, what it may cost."""

    label: str
    grid: int | tuple[int, int]
    block: int | tuple[int, int]
    arguments: Mapping[str, Any]
    results: Mapping[str, tuple[Array, Array]]
    """By name: the array, and what must be in it."""
    most: Most | None = None
    start: int = 0
    """Items of the results before those that the kernel is to write: these have negative numbers."""


Cases = Callable[[Random], Sequence[Case]]


@dataclass(frozen=True)
class Question:
    """Something to be answered; the answer comes from the trace of the exercise's own kernel."""

    name: str
    truth: Callable[[Trace, Exercise], str | float]
    tolerance: float = 0.0


@dataclass(frozen=True)
class Exercise:
    """An exercise: a kernel to write (`cases`), or questions about one."""

    number: int
    folder: str
    skill: str
    kernel: str
    parameters: str
    """Types as PTX has them: pointers are u64, int u32, float f32."""
    cases: Cases | None = None
    questions: tuple[Question, ...] = ()
    launch: Callable[[Kernel], Trace] | None = None
    """Of the kernel that the questions are about."""
    profile: bool = False
    """The trace belongs to the text."""

    @property
    def text(self) -> str:
        """What is asked for.

        >>> exercise(5).text.splitlines()[0].startswith("The loads from global memory are coalesced")
        True
        """
        return self._file("text.md").read_text()

    @property
    def starter(self) -> str:
        """CUDA C to begin with."""
        return self._file("start.cu").read_text()

    def trace(self) -> Trace:
        """What the lens counts of the kernel that the questions are about."""
        return _traced(self.number)

    def _file(self, name: str) -> Traversable:
        return files("gpumem.data") / "exercises" / self.folder / name

    def _trace(self) -> Trace:
        from .kernel import Kernel

        if self.launch is None:
            raise UsageError(f"exercise {self.number} asks for a kernel, not for answers")
        made = Kernel(self._file("start.ptx").read_text(), self.kernel, file="start.ptx")
        made.source["start.cu"] = self.starter
        return self.launch(made)


@cache
def _traced(number: int) -> Trace:
    return exercise(number)._trace()


def exercise(number: int) -> Exercise:
    """An exercise by its number, from 1. Raises UsageError for a number that there is not."""
    if not 1 <= number <= len(EXERCISES):
        raise UsageError(f"no exercise {number}: there are 1 to {len(EXERCISES)}")
    return EXERCISES[number - 1]


# --- questions


def marked(trace: Trace, asked: Exercise, name: str) -> Site:
    """The memory access of the line that is marked by (name)."""
    line = next(i for i, text in enumerate(asked.starter.splitlines(), 1) if text.endswith(f"// ({name})"))
    return next(site for site in trace.sites if site.line == line)


def is_coalesced(name: str) -> Question:
    """Whether the marked access touches no more sectors than its bytes fill."""

    def truth(trace: Trace, asked: Exercise) -> str:
        site = marked(trace, asked, name)
        return "yes" if site.sectors == site.sectors_ideal else "no"

    return Question(name, truth)


def counted(name: str, counter: str, executed: str) -> Question:
    """What the marked access costs each time."""

    def truth(trace: Trace, asked: Exercise) -> float:
        site = marked(trace, asked, name)
        return float(getattr(site, counter) / getattr(site, executed))

    return Question(name, truth)


def by_line(trace: Trace, counter: str, ideal: str) -> dict[int, int]:
    """What each line costs beyond its ideal."""
    lost: dict[int, int] = {}
    for site in trace.sites:
        lost[site.line] = lost.get(site.line, 0) + getattr(site, counter) - getattr(site, ideal)
    return lost


def worst_line(counter: str) -> Callable[[Trace, Exercise], float]:
    """The line that loses most."""

    def truth(trace: Trace, asked: Exercise) -> float:
        lost = by_line(trace, counter, f"{counter}_ideal")
        return max(lost, key=lambda line: lost[line])

    return truth


def used(trace: Trace, asked: Exercise) -> float:
    """Per cent of the bytes that the most wasteful line moves and uses."""
    line = worst_line("sectors")(trace, asked)
    sites = [site for site in trace.sites if site.line == line]
    return 100 * sum(site.lanes * site.width for site in sites) / sum(SECTOR * site.sectors for site in sites)


def in_all(counter: str) -> Callable[[Trace, Exercise], float]:
    """The sum of a counter."""
    return lambda trace, asked: sum(getattr(site, counter) for site in trace.sites)


PROFILE_QUESTIONS = (
    Question("line", worst_line("sectors")),
    Question("used", used, 0.5),
    Question("conflicts", worst_line("wavefronts")),
    Question("wavefronts", in_all("wavefronts_ideal")),
    Question("sectors", in_all("sectors_ideal")),
)


def ask_judge(kernel: Kernel) -> Trace:
    """The launch of exercise 1."""
    return kernel.trace(1, THREADS, zeros(THREADS), zeros(1 << 17), 64, names=("out", "in"), machine_code=False)


def ask_warp(kernel: Kernel) -> Trace:
    """The launch of exercises 2 and 4."""
    return kernel.trace(1, 32, zeros(32), zeros(1 << 14), names=("out", "in"), machine_code=False)


def ask_profile(kernel: Kernel) -> Trace:
    """The launch of exercise 9."""
    n, names = 2048, ("out", "in", "records")
    return kernel.trace(16, 128, zeros(9 * n), zeros(8 * n), zeros(4 * n), n, names=names, machine_code=False)


# --- kernels


def zeros(n: int) -> Array:
    """An array of float32."""
    return np.zeros(n, np.float32)


def given(random: Random, n: int) -> Array:
    """Random float32 of few digits, so that sums of two are exact; not to be written."""
    made = (random.integers(-4096, 4096, n) / 64).astype(np.float32)
    made.flags.writeable = False
    return made


def blocks(n: int, threads: int = THREADS) -> int:
    """Blocks for so many threads."""
    return max(-(-n // threads), 1)


def sectors(items: int) -> int:
    """Sectors that so many items of 4 bytes fill."""
    return -(-4 * items // SECTOR)


def sizes(random: Random, *awkward: int) -> list[int]:
    """Sizes that go wrong easily, and two that nobody knows before."""
    return [*awkward, *(int(n) for n in random.integers(100, 3000, 2))]


def soa_cases(random: Random) -> list[Case]:
    """Positions advanced; the counted size fills whole warps."""
    made = []
    for n in sizes(random, 1, 31, 33, 1000, 2048):
        pitch = -(-n // 32) * 32 + 32
        before = given(random, 8 * pitch).reshape(8, pitch)
        wanted = before.copy()
        wanted[:3, :n] += wanted[3:6, :n] * np.float32(0.25)
        data = before.copy().reshape(-1)
        most = Most(6 * sectors(n), 3 * sectors(n), 6 * n // 32, 3 * n // 32) if n == 2048 else None
        arguments = {"data": data, "dt": 0.25, "n": n, "pitch": pitch}
        made.append(Case(f"n = {n}", blocks(n) + 1, THREADS, arguments, {"data": (data, wanted.reshape(-1))}, most))
    return made


def row_sum_cases(random: Random) -> list[Case]:
    """Sums of rows of 32."""
    made = []
    for rows in [1, 31, 33, 100, 256, int(random.integers(40, 250))]:
        table = random.integers(-1 << 20, 1 << 20, (rows, 32)).astype(np.int32)
        table.flags.writeable = False
        out = np.zeros(rows, np.int32)
        most = Most(4 * rows, sectors(rows), rows, rows // 32) if rows == 256 else None
        arguments = {"out": out, "in": table, "rows": rows}
        wanted = table.sum(1, dtype=np.int32)
        made.append(Case(f"rows = {rows}", blocks(rows, 32), 32, arguments, {"out": (out, wanted)}, most))
    return made


def axpy_cases(random: Random) -> list[Case]:
    """Multiplied and added, four at a time."""
    made = []
    for n in (4 * (size // 4) for size in sizes(random, 4, 8, 128, 1028, 4096)):
        x, before = given(random, n), given(random, n)
        y = before.copy()
        most = Most(2 * sectors(n), sectors(n), 2 * n // 128, n // 128, wide=1.0) if n == 4096 else None
        arguments = {"y": y, "x": x, "a": 2.0, "n": n}
        wanted = np.float32(2) * x + before
        made.append(Case(f"n = {n}", blocks(n // 4) + 1, THREADS, arguments, {"y": (y, wanted)}, most))
    return made


def copy_cases(random: Random) -> list[Case]:
    """Copies from any start; what lies around the result must stay."""
    made = []
    for n, start in [
        *((n, start) for n in (1, 2, 3, 5, 7, 1001) for start in range(4)),
        *((n, int(random.integers(4))) for n in sizes(random)),
        (10_000, 0),
        (10_001, 3),
    ]:
        whole = given(random, n + 8)
        memory = np.full(n + 8, -77, np.float32)
        wanted = memory.copy()
        wanted[start : start + n] = whole[start : start + n]
        # A run of 512 bytes that begins inside a sector touches 17 of them instead of 16.
        few = sectors(n) * 17 // 16 + 8
        most = Most(few, few, wide=0.9) if n >= 10_000 else None
        arguments = {"out": memory[start:], "in": whole[start:], "n": n}
        label = f"n = {n}, starting {4 * start} bytes behind a multiple of 16"
        made.append(Case(label, blocks(n // 4) + 2, THREADS, arguments, {"out": (memory, wanted)}, most, start))
    return made


def record_cases(random: Random) -> list[Case]:
    """Five planes to records."""
    made = []
    for n in sizes(random, 1, 31, 255, 257, 1000, 2048):
        pitch = -(-n // 32) * 32 + 32
        planes, out = given(random, 5 * pitch), zeros(5 * n)
        most = Most(5 * sectors(n), sectors(5 * n), 5 * n // 32, 5 * n // 32) if n == 2048 else None
        arguments = {"out": out, "in": planes, "n": n, "pitch": pitch}
        wanted = np.ascontiguousarray(planes.reshape(5, pitch)[:, :n].T).reshape(-1)
        made.append(Case(f"n = {n}", blocks(n), THREADS, arguments, {"out": (out, wanted)}, most))
    return made


def transpose_cases(random: Random) -> list[Case]:
    """Matrices of any shape."""
    made = []
    some = [(int(random.integers(1, 130)), int(random.integers(1, 130))) for _ in range(2)]
    for rows, cols in [(1, 1), (1, 100), (100, 1), (32, 33), (33, 65), (127, 31), *some, (96, 160), (256, 192)]:
        matrix, out = given(random, rows * cols), zeros(rows * cols)
        each = rows * cols
        full = rows % 32 == cols % 32 == 0
        most = Most(sectors(each), sectors(each), each // 32, each // 32) if full else None
        arguments = {"out": out, "in": matrix, "rows": rows, "cols": cols}
        wanted = np.ascontiguousarray(matrix.reshape(rows, cols).T).reshape(-1)
        grid = (blocks(cols, 32), blocks(rows, 32))
        made.append(Case(f"{rows} x {cols}", grid, (32, 8), arguments, {"out": (out, wanted)}, most))
    return made


def letters(last: str) -> str:
    """The names of the questions."""
    return "abcdefghijklmnop"[: "abcdefghijklmnop".index(last) + 1]


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        *(1, "01_coalesced", "judge coalescing", "judge", "u64 u64 u32"),
        questions=tuple(map(is_coalesced, letters("h"))),
        launch=ask_judge,
    ),
    Exercise(
        *(2, "02_sectors", "count the 32-byte transactions of a warp", "sectors", "u64 u64"),
        questions=tuple(counted(name, "sectors", "requests") for name in letters("i")),
        launch=ask_warp,
    ),
    Exercise(3, "03_soa", "array of structures to structure of arrays", "advance", "u64 f32 u32 u32", soa_cases),
    Exercise(
        *(4, "04_banks", "bank arithmetic", "banks", "u64 u64"),
        questions=tuple(counted(name, "wavefronts", "shared") for name in letters("i")),
        launch=ask_warp,
    ),
    Exercise(5, "05_conflict", "remove a 32-way conflict", "row_sums", "u64 u64 u32", row_sum_cases),
    Exercise(6, "06_float4", "load and store 16 bytes at once", "axpy", "u64 u64 f32 u32", axpy_cases),
    Exercise(7, "07_alignment", "alignment and tail", "copy", "u64 u64 u32", copy_cases),
    Exercise(8, "08_staging", "coalesce stores through shared memory", "to_records", "u64 u64 u32 u32", record_cases),
    Exercise(
        *(9, "09_profile", "read a profile", "work", "u64 u64 u64 u32"),
        questions=PROFILE_QUESTIONS,
        launch=ask_profile,
        profile=True,
    ),
    Exercise(10, "10_transpose", "the whole transpose chain", "transpose", "u64 u64 u32 u32", transpose_cases),
)
