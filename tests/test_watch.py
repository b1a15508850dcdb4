"""What the watch of shared memory finds (csrc/simt/watch.h), told event by event what a block did.

First the rules, one a test; then random histories against the definition of a race: two accesses of one place, one of
them a write, of different threads, neither of which happens before the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gpumem import _core

ALL = 0xFFFFFFFF
Event = tuple[str, tuple[int, ...], Sequence[int] | None]
LINEAR = [4 * lane for lane in range(32)]
UPPER = [128 + 4 * lane for lane in range(32)]
REVERSED = LINEAR[::-1]
NEXT = [*LINEAR[1:], 0]


def only(lane: int, address: int) -> list[int]:
    return [address if i == lane else -1 for i in range(32)]


def access(how: str, site: int, warp: int, addresses: Sequence[int], width: int = 4) -> Event:
    return (how, (site, warp, width), addresses)


def barrier(warps: int = 0b11) -> Event:
    return ("barrier", (warps,), None)


def syncwarp(warp: int = 0, lanes: int = ALL) -> Event:
    return ("warp barrier", (warp, lanes, ALL), None)


def release(warp: int, key: int = 7) -> Event:
    return ("release", (key, warp), None)


def acquire(warp: int, key: int = 7) -> Event:
    return ("acquire", (key, warp), None)


def found(events: list[Event], threads: int = 64, size: int = 1024, grain: int = 4) -> list[dict[str, Any]]:
    return _core._watch(threads, size, grain, events)[0]


def rows(events: list[Event], **how: Any) -> list[tuple[str, int, int, int]]:
    """(kind, line, other line, lanes) of each finding; sites stand on the line behind their number."""
    return [
        (f["kind"], f["place"]["line"] - 1, f["other"]["line"] - 1 if f["other"] else -1, f["lanes"])
        for f in found(events, **how)
    ]


# races between warps

TWO_WARPS = {
    "read after write": ([access("write", 0, 0, LINEAR), access("read", 1, 1, LINEAR)], [("race-shared", 1, 0, 32)]),
    "write after write": ([access("write", 0, 0, LINEAR), access("write", 1, 1, LINEAR)], [("race-shared", 1, 0, 32)]),
    "write after read": (
        [access("write", 0, 0, LINEAR), barrier(), access("read", 1, 0, LINEAR), access("write", 2, 1, REVERSED)],
        [("race-shared", 2, 1, 32)],
    ),
    "a barrier between": ([access("write", 0, 0, LINEAR), barrier(), access("read", 1, 1, LINEAR)], []),
    "elsewhere": ([access("write", 0, 0, LINEAR), access("write", 1, 1, UPPER)], []),
    "two readers": (
        [access("write", 0, 0, LINEAR), barrier(), access("read", 1, 0, LINEAR), access("read", 1, 1, LINEAR)],
        [],
    ),
    "a writer among two readers": (
        [
            access("write", 0, 0, LINEAR), barrier(), access("read", 1, 0, LINEAR), access("read", 2, 1, LINEAR),
            access("write", 3, 1, LINEAR),
        ],
        [("race-shared", 3, 1, 32)],
    ),
    "the barrier of another warp": (
        [access("write", 0, 0, LINEAR), barrier(0b110), access("read", 1, 1, LINEAR)],
        [("race-shared", 1, 0, 32)],
    ),
    "half of the places": (
        [access("write", 0, 0, LINEAR), access("read", 1, 1, [64 + 4 * lane for lane in range(32)])],
        [("race-shared", 1, 0, 16)],
    ),
    "atomics": ([access("atom", 0, 0, [0] * 32), access("atom", 1, 1, [0] * 32)], []),
    "an atomic and a plain read": (
        [access("atom", 0, 0, [0] * 32), access("read", 1, 1, only(3, 0))],
        [("race-shared", 1, 0, 1)],
    ),
    "a volatile flag": ([access("volatile write", 0, 0, only(0, 0)), access("volatile read", 1, 1, only(0, 0))], []),
    "release and acquire": (
        [access("write", 0, 0, LINEAR), release(0), acquire(1), access("read", 1, 1, LINEAR)],
        [],
    ),
    "another key": (
        [access("write", 0, 0, LINEAR), release(0), acquire(1, key=8), access("read", 1, 1, LINEAR)],
        [("race-shared", 1, 0, 32)],
    ),
    "what comes behind a release": (
        [release(0), access("write", 0, 0, LINEAR), acquire(1), access("read", 1, 1, LINEAR)],
        [("race-shared", 1, 0, 32)],
    ),
    "by way of a third warp": (
        [
            access("write", 0, 0, LINEAR), release(0), acquire(2), release(2, key=8), acquire(1, key=8),
            access("read", 1, 1, LINEAR),
        ],
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TWO_WARPS)
def test_accesses_of_two_warps(case):
    events, wanted = TWO_WARPS[case]
    assert rows(events, threads=96) == wanted


# races within a warp

ONE_WARP = {
    "own words": ([access("write", 0, 0, LINEAR), access("read", 1, 0, LINEAR), access("write", 2, 0, LINEAR)], []),
    "the neighbour's word": ([access("write", 0, 0, LINEAR), access("read", 1, 0, NEXT)], [("race-warp", 1, 0, 32)]),
    "a syncwarp between": ([access("write", 0, 0, LINEAR), syncwarp(), access("read", 1, 0, NEXT)], []),
    "read, then write": (
        [access("write", 0, 0, LINEAR), syncwarp(), access("read", 1, 0, NEXT), access("write", 2, 0, LINEAR)],
        [("race-warp", 2, 1, 32)],
    ),
    "all lanes write one word": ([access("write", 0, 0, [0] * 32)], []),
    "all lanes read one word, one writes it": (
        [
            access("write", 0, 0, only(0, 0)), syncwarp(), access("read", 1, 0, [0] * 32),
            access("write", 2, 0, only(0, 0)),
        ],
        [("race-warp", 2, 1, 1)],
    ),
    "the half that did not meet": (
        [access("write", 0, 0, LINEAR), syncwarp(0, 0xFFFF), access("read", 1, 0, REVERSED)],
        [("race-warp", 1, 0, 32)],
    ),
    "the half that met": (
        [access("write", 0, 0, LINEAR), syncwarp(0, 0xFFFF), access("read", 1, 0, [*LINEAR[15::-1], *[-1] * 16])],
        [],
    ),
    "two halves in turn": (
        [
            access("write", 0, 0, only(0, 0)), syncwarp(0, 0x3), syncwarp(0, 0x6), access("read", 1, 0, only(2, 0)),
            access("read", 2, 0, only(3, 0)),
        ],
        [("race-warp", 2, 0, 1)],
    ),
    "volatile is no syncwarp": (
        [access("volatile write", 0, 0, LINEAR), access("volatile read", 1, 0, NEXT)],
        [("race-warp", 1, 0, 32)],
    ),
    "lanes that exited need not come": (
        [access("write", 0, 0, LINEAR), ("warp barrier", (0, 0xFF, 0xFF), None), access("read", 1, 0, only(3, 0))],
        [],
    ),
}  # fmt: skip


def fence(warp: int = 0, lanes: int = ALL) -> Event:
    return ("fence", (warp, lanes), None)


def strong(how: str, lanes: int, warp: int = 0) -> Event:
    return (f"strong {how}", (warp, lanes), None)


WRITES, READS = access("write", 0, 0, only(0, 0)), access("read", 1, 0, only(1, 0))
RACE = [("race-warp", 1, 0, 1)]
ONE_WARP |= {
    "a fence between": ([WRITES, fence(), READS], RACE),
    "fences and no hand-over": ([WRITES, fence(), fence(), fence(), READS], RACE),
    "handed over and taken over": (
        [WRITES, fence(0, 1), strong("write", 1), strong("read", 2), fence(0, 2), READS],
        [],
    ),
    "by atomics": ([WRITES, fence(0, 1), strong("atom", 1), strong("atom", 2), fence(0, 2), READS], []),
    "no fence before the flag": ([WRITES, strong("write", 1), strong("read", 2), fence(0, 2), READS], RACE),
    "no fence behind the flag": ([WRITES, fence(0, 1), strong("write", 1), strong("read", 2), READS], RACE),
    "nobody read the flag": ([WRITES, fence(0, 1), strong("write", 1), fence(0, 2), READS], RACE),
    "written behind the fence": (
        [fence(0, 1), WRITES, strong("write", 1), strong("read", 2), fence(0, 2), READS],
        RACE,
    ),
    "handed on by a third lane": (
        [
            WRITES, fence(0, 1), strong("write", 1), strong("read", 4), fence(0, 4), strong("write", 4),
            strong("read", 2), fence(0, 2), READS,
        ],
        [],
    ),
    "one lane arrives, all wait": (
        [WRITES, ("hand over", (0, 1), None), ("take over", (0, ALL), None), READS],
        [],
    ),
    "another lane arrives": ([WRITES, ("hand over", (0, 4), None), ("take over", (0, ALL), None), READS], RACE),
    "a fence is no syncwarp for what was met before": (
        [WRITES, syncwarp(), fence(), READS],
        [],
    ),
    "a release and an acquire of one warp": ([WRITES, release(0), acquire(0), READS], RACE),
}  # fmt: skip


@pytest.mark.parametrize("case", ONE_WARP)
def test_accesses_of_one_warp(case):
    events, wanted = ONE_WARP[case]
    assert rows(events) == wanted


# unwritten memory


def test_reads_of_unwritten_memory_are_given_back_lane_by_lane():
    half = [*LINEAR[:16], *[-1] * 16]
    findings, answers = _core._watch(
        32, 1024, 4, [access("write", 0, 0, half), access("read", 1, 0, LINEAR), access("atom", 2, 0, UPPER)]
    )
    assert findings == []
    assert answers == [0, 0xFFFF0000, ALL]


def test_used_unwritten_memory_is_a_finding():
    finding = found([access("unwritten", 5, 1, only(3, 40))])[0]
    assert (finding["kind"], finding["place"]["line"], finding["other"]) == ("unwritten-shared", 6, None)
    assert finding["examples"][0]["thread"] == (35, 0, 0)
    assert finding["examples"][0]["offset"] == 40


def test_a_new_block_has_written_nothing_and_races_with_nobody():
    answers = _core._watch(
        64, 1024, 4, [access("write", 0, 0, LINEAR), ("block", (1,), None), access("read", 1, 1, LINEAR)]
    )
    assert answers == ([], [0, 0, ALL])


def test_bytes_that_arrived_are_written_and_in_order():
    assert _core._watch(64, 1024, 4, [("arrived", (0, 128), None), access("read", 1, 1, LINEAR)]) == ([], [0, 0])


@pytest.mark.parametrize("grain, wanted", [(1, []), (4, [("race-shared", 1, 0, 32)])])
def test_neighbouring_bytes_are_two_places_where_the_kernel_accesses_bytes(grain, wanted):
    events = [
        access("write", 0, 0, [2 * i for i in range(32)], grain),
        access("write", 1, 1, [2 * i + 1 for i in range(32)], grain),
    ]
    assert rows(events, grain=grain) == wanted


def test_wide_accesses_cover_all_of_their_places():
    wide = [16 * lane for lane in range(32)]
    assert rows([access("write", 0, 0, wide, 16), access("read", 1, 1, only(0, 508))]) == [("race-shared", 1, 0, 1)]
    assert rows([access("write", 0, 0, only(5, 12)), access("read", 1, 1, wide, 16)]) == [("race-shared", 1, 0, 1)]


# asynchronous copies

COPY = access("copy", 0, 0, LINEAR)
COMMIT = ("commit", (0, ALL), None)


def wait(left: int, every: int = 0) -> Event:
    return ("wait", (0, ALL, left, every), None)


COPIES = {
    "not waited for": ([COPY, COMMIT, barrier(), access("read", 1, 1, LINEAR)], [("async-pending", 1, 0, 32)]),
    "not even by itself": ([COPY, COMMIT, access("read", 1, 0, LINEAR)], [("async-pending", 1, 0, 32)]),
    "waited for": ([COPY, COMMIT, wait(0), barrier(), access("read", 1, 1, LINEAR)], []),
    "waited for, no barrier": ([COPY, COMMIT, wait(0), access("read", 1, 1, LINEAR)], [("race-shared", 1, 0, 32)]),
    "wait and barrier the wrong way round": (
        [COPY, COMMIT, barrier(), wait(0), access("read", 1, 1, LINEAR)],
        [("race-shared", 1, 0, 32)],
    ),
    "the thread that waited": ([COPY, COMMIT, wait(0), access("read", 1, 0, LINEAR)], []),
    "waited before the commit": (
        [COPY, wait(0), barrier(), access("read", 1, 1, LINEAR)],
        [("async-pending", 1, 0, 32)],
    ),
    "wait_all needs no commit": ([COPY, wait(0, 1), barrier(), access("read", 1, 1, LINEAR)], []),
    "the second group is left": (
        [
            COPY, COMMIT, access("copy", 1, 0, UPPER), COMMIT, wait(1), barrier(), access("read", 2, 1, LINEAR),
            access("read", 3, 1, UPPER),
        ],
        [("async-pending", 3, 1, 32)],
    ),
    "written over meanwhile": ([COPY, COMMIT, access("write", 1, 0, LINEAR)], [("async-pending", 1, 0, 32)]),
    "copied over what is still read": (
        [access("write", 2, 1, LINEAR), barrier(), access("read", 1, 1, LINEAR), COPY],
        [("race-shared", 0, 1, 32)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COPIES)
def test_asynchronous_copies(case):
    events, wanted = COPIES[case]
    assert rows(events) == wanted


def test_copies_never_waited_for_take_no_memory_without_bound():
    assert found([COPY, COMMIT] * 6000)[0]["kind"] == "async-pending"


# what is kept


def test_examples_are_the_first_threads_and_name_both():
    finding = found([access("write", 0, 1, LINEAR), access("read", 1, 0, REVERSED)])[0]
    assert (finding["lanes"], finding["times"], finding["bytes"], finding["writes"]) == (32, 1, 4, False)
    assert [e["thread"] for e in finding["examples"]] == [(i, 0, 0) for i in range(4)]
    assert finding["examples"][0] == {
        "block": (0, 0, 0), "thread": (0, 0, 0), "other_thread": (63, 0, 0), "address": 124, "buffer": None,
        "offset": 124, "other_block": None,
    }  # fmt: skip


def test_alike_findings_are_one_row():
    events = [event for _ in range(100) for event in (access("write", 0, 0, LINEAR), access("read", 1, 1, LINEAR))]
    assert {(f["kind"], f["place"]["line"], f["other"]["line"]): f["times"] for f in found(events)} == {
        ("race-shared", 1, 2): 99, ("race-shared", 2, 1): 100,
    }  # fmt: skip


def test_wild_addresses_are_not_looked_at():
    assert rows([access("write", 0, 0, [2**31 - 4] * 32), access("read", 0, 0, [1024] * 32)]) == []


@pytest.mark.parametrize("events", [[("what", (), None)], [("read", (0, 0, 4), [0])], [1], [("read", 0, None)]])
def test_bad_events_are_refused(events):
    with pytest.raises((ValueError, TypeError, IndexError)):
        found(events)


# random histories


class History:
    """The definition, with the whole clock of every thread; slow."""

    def __init__(self, warps: int):
        self.clock = np.zeros((32 * warps, 32 * warps), int)  # [t][u]: how much of u's time t has seen
        self.accesses: dict[int, list[tuple[int, int, bool]]] = {}  # address: (thread, its time, writes)
        self.raced: set[tuple[int, int]] = set()  # (event, thread)
        self.events = 0

    def meet(self, threads: list[int]) -> None:
        for t in threads:
            self.clock[t, t] += 1
        self.clock[threads] = self.clock[threads].max(0)
        for t in threads:
            self.clock[t, t] += 1

    def access(self, warp: int, addresses: Sequence[int], writes: bool) -> None:
        before = {a: list(self.accesses.get(a, ())) for a in addresses}
        for lane, address in enumerate(addresses):
            if address < 0:
                continue
            me = 32 * warp + lane
            for thread, time, wrote in before[address]:
                if thread != me and (wrote or writes) and self.clock[me, thread] <= time:
                    self.raced.add((self.events, me))
            self.accesses.setdefault(address, []).append((me, self.clock[me, me], writes))
        self.events += 1


def lanes_of(mask: int) -> list[int]:
    return [lane for lane in range(32) if mask >> lane & 1]


@pytest.mark.parametrize("seed", range(200))
def test_random_histories(seed):
    """Races are found where they first happen, and none is made up.

    After a first race the watch may forget older accesses, so histories end there. Where only some lanes of a warp or
    some warps of the block meet (odd seeds) it may forget a reader, so that not every thread that races is named.
    """
    rng = np.random.default_rng(seed)
    warps, places, parts = 3, int(rng.choice([2, 8, 40])), seed % 2
    history = History(warps)
    events: list[Event] = []
    while len(events) < 60 and not history.raced:
        what, warp = rng.choice(["read", "read", "write", "meet", "barrier"]), int(rng.integers(warps))
        if what == "meet":
            mask = int(rng.choice([ALL, 0xFFFF, 0xFFFF0000, rng.integers(1, 2**32)])) if parts else ALL
            events.append(("warp barrier", (warp, mask, ALL), None))
            history.meet([32 * warp + lane for lane in lanes_of(mask)])
        elif what == "barrier":
            which = int(rng.choice([7, 7, 3, 6])) if parts else 7
            events.append(("barrier", (which,), None))
            history.meet([32 * w + lane for w in range(warps) if which >> w & 1 for lane in range(32)])
        else:
            few = int(rng.choice([1, 2, 32]))
            addresses = [4 * int(rng.integers(places)) if rng.random() < few / 32 else -1 for _ in range(32)]
            if what == "write":  # the last of lanes that write one place at once is taken for its only writer
                addresses = [a if a not in addresses[:lane] else -1 for lane, a in enumerate(addresses)]
            events.append(access(what, len(events), warp, addresses))
            history.access(warp, addresses, what == "write")
    got = found(events, threads=32 * warps)
    threads = {thread for _, thread in history.raced}
    lanes = sum(f["lanes"] for f in got)
    assert lanes <= len(threads) if parts else lanes == len(threads)
    assert {f["place"]["line"] for f in got} <= {len(events)}
    assert {e["thread"][0] for f in got for e in f["examples"]} <= threads
