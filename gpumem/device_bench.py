"""The benchmark on a CUDA device."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from .cases import cases
from .console import Progress
from .device_work import DeviceMove, DevicePeer, environment, need_torch, present
from .errors import UsageError
from .result import US, Result, Row
from .timing import ROUNDS, fastest, interleave


def device_bench(
    op: str,
    *,
    only: Sequence[str] = (),
    quick: bool = False,
    repeat: int | None = None,
    peers: Sequence[str] | None = None,
    progress: bool | None = None,
) -> Result:
    """As `gpumem.bench`, for `device="cuda"`."""
    found = cases(op, quick=quick, only=only, device="cuda")
    rounds = repeat or (5 if quick else ROUNDS)
    if rounds < 1:
        raise UsageError(f"repeat={repeat}: at least 1 round")
    torch = need_torch()
    others = present(torch, None if peers is None else list(peers))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    rows, skipped = [], []
    with Progress(f"bench {op}", len(found), progress) as line:
        for case in found:
            line.step(case.label, 0)
            try:
                rows.append(measure(DeviceMove(torch, case), others, rounds))
            except torch.OutOfMemoryError:
                skipped.append(f"{case.label}: not enough memory on the device")
            torch.cuda.empty_cache()
            line.step(case.label)
    if not rows:
        raise UsageError("; ".join(skipped))
    taking_part = {peer.name: peer.version for peer in others if any(peer.name in row.seconds for row in rows)}
    return Result(found[0].op, tuple(rows), {**environment(), "date": now}, taking_part, tuple(skipped))


def measure(job: DeviceMove, peers: Sequence[DevicePeer], rounds: int) -> Row:
    """Verifies and times one case."""
    calls = {US: job.gpumem()} | {peer.name: call for peer in peers if (call := peer.make(job))}
    for name, call in calls.items():
        job.verify(name, call)
    references = job.references()
    samples = interleave({name: job.timer(call) for name, call in {**references, **calls}.items()}, rounds)
    return Row(job.case.to_dict(), job.bytes, fastest(samples, list(references)), samples)
