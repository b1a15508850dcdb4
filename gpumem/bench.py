"""The benchmark: gpumem and its peers on the shapes of the field, as fractions of a copy of the same moment."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from . import machine
from .cases import Case, cases, group_of
from .console import Progress
from .errors import RoomError, UsageError
from .peers import Peer, peer, present
from .result import US, Result, Row
from .timing import ROUNDS, fastest, interleave
from .work import Arena, Copy, FreshTranspose, Job, Permute, Sum, Swap, need_memory

FAR_LARGER = 8  # times the last cache: work of so many bytes finds next to nothing of its arrays there


class Place(Protocol):
    """Where a benchmark runs."""

    @property
    def peers(self) -> Sequence[Peer]:
        """Those who take part."""

    @property
    def full(self) -> type[Exception]:
        """What is raised where a case does not fit into the memory that is free."""

    def environment(self) -> dict[str, Any]:
        """What stands beside a measurement."""

    def job(self, case: Case) -> Job:
        """The arrays and calls of a case."""


class Host:
    """The CPU; all jobs share their memory."""

    full = RoomError

    def __init__(self, peers: Sequence[str] | None) -> None:
        self.peers = present(peers)
        self.environment = machine.environment
        self._arena = Arena()

    def job(self, case: Case) -> Job:
        """The arrays and calls of a case. Raises RoomError where they do not fit."""
        need_memory(case.shape, np.dtype(case.dtype))
        job = make_job(case, self._arena)
        if group_of(case.group).cold and job.bytes < FAR_LARGER * machine.last_cache():
            job.before = self._arena.empty_caches
        return job


def place(device: str | None, peers: Sequence[str] | None) -> Place:
    """The place of a device whose rows there are. Raises UsageError where nothing can run on it here."""
    if device == "cuda":
        from .device_work import Cuda

        return Cuda(peers)
    return Host(peers)


def bench(
    op: str = "transpose",
    *,
    device: str | None = None,
    only: Sequence[str] = (),
    quick: bool = False,
    repeat: int | None = None,
    peers: Sequence[str] | None = None,
    progress: bool | None = None,
) -> Result:
    """Times an operation on the shapes of the field, next to a copy of the same bytes and to peers, in turns.

    op: "transpose" (square, thin, published and application permutations, in place), "copy" (strided and reversed) or
    "sum". only: rows whose "group/name dtype" contains one of these, which may be patterns (* ?). quick: a fifth of the
    rows, fewer rounds. repeat: rounds, 7 (quick: 5). peers: whom to compare with, out of "numpy", "hptt", "openblas",
    "torch"; None for all that are present. progress: a line on stderr; None where that is a terminal.

    device: None or "cpu"; "cuda" for the first CUDA device: PyTorch holds the arrays, the times are those of CUDA's
    events, each call finds a cold cache, the copy is the better of cudaMemcpyAsync and gpumem's own, and the peers are
    "torch", "cupy", "cublas" and "cutensor".

    On the CPU each sample finds the caches empty of its arrays, but for the rows that are about arrays in the caches.

    Every output is compared with NumPy's before it is timed: WrongResultError where it differs. Raises UsageError (a
    ValueError) for unknown names.

    >>> result = gpumem.bench("transpose", only=["tiny/whole call 8x8"], repeat=3, peers=["numpy"], progress=False)
    >>> result.rows[0].bytes
    512
    """
    found = cases(op, quick=quick, only=(only,) if isinstance(only, str) else only, device=device or "cpu")
    rounds = repeat or (5 if quick else ROUNDS)
    if rounds < 1:
        raise UsageError(f"repeat={repeat}: at least 1 round")
    here = place(device, peers)
    environment = {**here.environment(), "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
    rows, skipped = [], []
    with Progress(f"bench {op}", len(found), progress) as line:
        for case in found:
            line.step(case.label, 0)
            try:
                rows.append(measure(case, here.job(case), here.peers, rounds))
            except here.full as error:
                skipped.append(f"{case.label}: {error}")
            line.step(case.label)
    if not rows:
        raise UsageError("; ".join(skipped))
    taking_part = {
        each.name: each.version()
        for each in (*here.peers, peer("numpy"))
        if any(each.name in row.seconds for row in rows)
    }
    return Result(found[0].op, tuple(rows), environment, taking_part, tuple(skipped))


def measure(case: Case, job: Job, peers: Sequence[Peer], rounds: int) -> Row:
    """Verifies and times one case."""
    timers = {US: job.gpumem()}
    if group_of(case.group).against == "numpy":  # so it takes part, asked for or not
        peers = [*(each for each in peers if each.name != "numpy"), peer("numpy")]
    timers |= {each.name: timer for each in peers if (timer := job.peer(each))}
    for name, timer in timers.items():
        if name == US or job.must_check(name):
            job.verify(f"{name}: {case.label}", timer)
    references = job.references()
    with np.errstate(over="ignore", invalid="ignore"):  # a peer's float16 sum may overflow
        samples = interleave(references | timers, rounds, calls=job.calls, before=job.before)
    return Row(case.to_dict(), job.bytes, fastest(samples, list(references)), samples)


def make_job(case: Case, arena: Arena) -> Job:
    """The arrays and calls of a case on the CPU."""
    dtype = np.dtype(case.dtype)
    if case.op == "sum":
        return Sum(arena, case.shape, dtype, case.axis)
    if case.op == "copy":
        return Copy(arena, case.shape, dtype, tuple(slice(None, None, step) for step in case.step))
    if case.group == "tiny":
        return FreshTranspose(arena, case.shape, dtype, case.axes)
    if case.in_place:
        return Swap(arena, case.shape, dtype, case.axes)
    return Permute(arena, case.shape, dtype, case.axes)
