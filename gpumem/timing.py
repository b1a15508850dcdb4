"""Fair timing: contestants take turns, round by round, so that whatever the machine does meanwhile it does to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from timeit import Timer

import numpy as np

ROUNDS = 7
FEWEST = 3  # rounds that even the slowest takes part in
SECONDS_EACH = 1.0  # once it has used as much, a contestant sits out: its median hardly moves any more


@dataclass(frozen=True)
class Spread:
    """A median and the quartiles round it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: list[float]) -> Spread:
        """The median and quartiles of one sample or more."""
        low, median, high = np.percentile(samples, (25, 50, 75))
        return cls(float(median), float(low), float(high))

    def to_dict(self) -> dict[str, float]:
        """Rounded to what a timing can mean."""
        return {"median": float(f"{self.median:.4g}"), "q1": float(f"{self.low:.4g}"), "q3": float(f"{self.high:.4g}")}


def interleave(
    timers: Mapping[str, Timer],
    rounds: int = ROUNDS,
    *,
    calls: int | None = 1,
    seconds_each: float = SECONDS_EACH,
    before: Callable[[], object] | None = None,
    step: Callable[[str], None] | None = None,
) -> dict[str, list[float]]:
    """Seconds a call, `rounds` samples for each timer at most, the n-th of every timer taken in the n-th round.

    Odd rounds run in the opposite order, so that nobody always follows the same neighbour. `calls` is how many calls
    make a sample; None finds for each timer the number that takes about a millisecond. A call before the first round
    is not counted. `before` is called before each sample, outside of what is timed.
    """
    counts: dict[str, int] = {}
    for name, timer in timers.items():
        if step:
            step(f"warming up {name}")
        counts[name] = calls or calls_for(timer)
        timer.timeit(1)
    samples: dict[str, list[float]] = {name: [] for name in timers}
    spent = dict.fromkeys(timers, 0.0)
    names = list(timers)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else names[::-1]:
            if turn >= min(FEWEST, rounds) and spent[name] > seconds_each:
                continue
            if step:
                step(f"round {turn + 1} of {rounds}: {name}")
            if before:
                before()
            seconds = timers[name].timeit(counts[name])
            spent[name] += seconds
            samples[name].append(seconds / counts[name])
    return samples


def calls_for(timer: Timer, seconds: float = 1e-3) -> int:
    """How many calls take about `seconds`."""
    calls = 1
    while (took := timer.timeit(calls)) < seconds:
        calls = max(2 * calls, int(calls * min(seconds / max(took, 1e-9), 100.0)))
    return calls


def calls_per_sample(size: int) -> int | None:
    """One call where it moves so many bytes that the clock's steps do not show; else None: found by trying."""
    return 1 if size >= 1 << 24 else None


def ratio(reference: list[float], samples: list[float]) -> Spread:
    """How fast `samples` are as a fraction of `reference`, compared within each round: more than 1 is faster."""
    return Spread.of([a / b for a, b in zip(reference, samples, strict=False)])


def fastest(samples: Mapping[str, list[float]], names: list[str]) -> str:
    """The one with the lowest median."""
    return min(names, key=lambda name: Spread.of(samples[name]).median)
