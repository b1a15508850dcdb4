"""Many threads at once, children of a fork, and ten thousand calls: nothing is lost, locked or kept."""

import gc
import itertools
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from arrays import random_bytes, same

import gpumem


def run(code: str) -> str:
    """The output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_threads_calling_at_once():
    """Each with its own arrays, of every size on both sides of where threads and the GIL come in."""
    jobs = [random_bytes((n, n + 3), dtype, seed=n) for n in (3, 50, 300, 1100) for dtype in ("u1", "f4", "V3")] * 4

    def work(x):
        for _ in range(5):
            assert same(gpumem.transpose(x), x.T)
            assert same(gpumem.copy(x[::-1]), x[::-1])
        square = x[:, : len(x)].copy()
        expected = square.T.copy()
        gpumem.transpose(square, out=square)
        assert same(square, expected)
        bits = x.view("u1")
        assert (gpumem.sum(bits, axis=0) == bits.sum(axis=0, dtype="u8")).all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, jobs))


@pytest.mark.parametrize("dtype", ["u1", "f4", "V3"])
def test_the_gaps_of_a_strided_out_belong_to_others(dtype):
    """Two threads fill the odd and the even items of one buffer: writing a gap back would undo the other's."""
    mine, others = (random_bytes((500, 300), dtype, seed) for seed in (1, 2))
    whole = np.zeros((500, 600), dtype)

    def fill(x, out):
        for _ in range(60):
            out[...] = np.zeros((), dtype)
            gpumem.copy(x, out=out)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fill, (mine, others), (whole[:, ::2], whole[:, 1::2])))
    assert same(whole[:, ::2].copy(), mine)
    assert same(whole[:, 1::2].copy(), others)


def test_the_thread_count_may_change_under_way():
    x = random_bytes((1000, 700), "f4")
    before, stop = gpumem.get_num_threads(), threading.Event()

    def change():
        for count in itertools.cycle((1, 2, 5)):
            gpumem.set_num_threads(count)
            if stop.wait(0.001):
                return

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(30):
            assert same(gpumem.transpose(x), x.T)
    finally:
        stop.set()
        other.join()
        gpumem.set_num_threads(before)


def test_other_threads_run_while_data_moves():
    """With switches by the clock ruled out, the other thread can only run if the call lets go of the GIL."""
    x, out = np.zeros((4096, 2048), "f4"), np.zeros((2048, 4096), "f4")
    total = np.zeros((), "f4")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        for call in [lambda: gpumem.transpose(x, out=out), lambda: gpumem.sum(x, out=total)]:
            for _ in range(20):
                ready, ran = threading.Lock(), []
                ready.acquire()
                other = threading.Thread(target=lambda ready=ready, ran=ran: (ready.acquire(), ran.append(True)))
                other.start()
                ready.release()  # awake now, but waiting for the GIL
                call()
                done_meanwhile = bool(ran)
                other.join()
                if done_meanwhile:
                    break
            assert done_meanwhile
    finally:
        sys.setswitchinterval(interval)


FORK = """
import os, signal, sys
import numpy as np
import gpumem

def check():
    x = np.arange(1500 * 1300, dtype="f4").reshape(1500, 1300)
    assert (gpumem.transpose(x) == x.T).all()
    assert gpumem.sum(x.astype("f8")) == x.sum(dtype="f8")
    assert (gpumem.copy(x[::-1]) == x[::-1]).all()

gpumem.set_num_threads(3)
if USED:
    check()
for depth in range(2):
    child = os.fork()
    if child == 0:
        signal.alarm(600)
        check()
        if depth == 0:
            grandchild = os.fork()
            if grandchild == 0:
                signal.alarm(600)
                check()
                os._exit(0)
            assert os.waitpid(grandchild, 0)[1] == 0
        os._exit(0)
    check()
    assert os.waitpid(child, 0)[1] == 0
print("alive")
"""


@pytest.mark.parametrize("used", [False, True], ids=["after import", "after use"])
def test_children_of_a_fork_work(used):
    assert run(FORK.replace("USED", str(used))) == "alive\n"


def test_import_starts_no_thread():
    code = """
import numpy, pathlib
def threads(): return pathlib.Path("/proc/self/status").read_text().split("Threads:")[1].split()[0]
before = threads()
import gpumem
gpumem.transpose(numpy.zeros((30, 40)))
print(before == threads())
"""
    assert run(code) == "True\n"


@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="a fork may find AddressSanitizer's own allocator locked by another thread: the child then waits for ever",
)
def test_fork_under_fire():
    """A fork while other threads move data: the child's pool must not wait for workers that it does not have."""
    code = """
import os, signal, threading
import numpy as np
import gpumem
gpumem.set_num_threads(4)
x = np.arange(1000 * 1000, dtype="f4").reshape(1000, 1000)
stop = threading.Event()
def work():
    while not stop.is_set():
        gpumem.transpose(x)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(600)
        os._exit(0 if (gpumem.transpose(x) == x.T).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for t in threads: t.join()
print("alive")
"""
    assert run(code) == "alive\n"


def fails(call):
    try:
        call()
    except (TypeError, ValueError):
        return
    raise AssertionError("did not raise")


X = np.arange(12.0).reshape(3, 4)
OUT = np.empty((4, 3))
SWAPPED = X.astype(">f8")
RECORDS = np.zeros(5, [("a", "u1"), ("b", "f8")])
CALLS = {
    "transpose": lambda: gpumem.transpose(X),
    "axes": lambda: gpumem.permute_dims(X, [1, 0]),
    "out": lambda: gpumem.transpose(X, out=OUT),
    "in place": lambda: gpumem.transpose(OUT[:3], out=OUT[:3]),
    "overlap": lambda: gpumem.copy(OUT[1:], out=OUT[:-1]),
    "stage": lambda: gpumem.copy(X, stage="naive", device="cpu"),
    "sum": lambda: gpumem.sum(X, axis=(0,), keepdims=True, dtype="f4"),
    "sum of swapped bytes": lambda: gpumem.sum(SWAPPED),
    "records": lambda: gpumem.to_aos(gpumem.to_soa(RECORDS)),
    "not an array": lambda: fails(lambda: gpumem.transpose([1])),
    "wrong axes": lambda: fails(lambda: gpumem.transpose(X, (0, 0))),
    "wrong out": lambda: fails(lambda: gpumem.transpose(X, out=X)),
    "wrong dtype": lambda: fails(lambda: gpumem.sum(X, dtype="i4")),
    "wrong stage": lambda: fails(lambda: gpumem.sum(SWAPPED, stage="none")),
    "wrong keyword": lambda: fails(lambda: gpumem.sum(X, axes=None)),
    "objects": lambda: fails(lambda: gpumem.copy(np.array([None]))),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_ten_thousand_calls_keep_nothing(call):
    held = [X, OUT, SWAPPED, RECORDS, X.dtype, SWAPPED.dtype, np.dtype("f4"), np.ndarray, (1, 0), None]
    for _ in range(100):
        call()
    gc.collect()
    counts, blocks, pages = [sys.getrefcount(h) for h in held], sys.getallocatedblocks(), resident_pages()
    for _ in range(10_000):
        call()
    gc.collect()
    for thing, before, after in zip(held, counts, [sys.getrefcount(h) for h in held], strict=True):
        assert abs(after - before) < 100, f"references to {thing!r}"
    assert sys.getallocatedblocks() - blocks < 1000
    # AddressSanitizer keeps freed memory back, and finds leaks by itself.
    assert resident_pages() - pages < 1000 or "asan" in os.environ.get("LD_PRELOAD", "")


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])
