"""Many Python threads at once: on the same arrays and on their own, every call gives what NumPy gives.

With a GIL the threads meet while data moves; on a free-threaded Python (PEP 703) everywhere.
"""

import ctypes
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import numpy as np
import pytest
from arrays import random_bytes, same
from dlpack_abi import ExchangeApi, FromPyObject, Hands, Legacy, Producer, api

import gpumem

THREADS = 8
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture(autouse=True)
def as_before():
    """Threads take turns far more often than usual; what a storm sets is set back."""
    interval, threads = sys.getswitchinterval(), gpumem.get_num_threads()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)
    gpumem.set_num_threads(threads)


def storm(calls, seconds):
    """Every thread makes all calls, out of step with the others, until the time is over; the first error is raised."""
    start = threading.Barrier(THREADS)

    def work(first):
        start.wait()
        end = monotonic() + seconds
        while True:
            for i in range(len(calls)):
                calls[(first + i) % len(calls)]()
            if monotonic() > end:
                return

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, i) for i in range(THREADS)]:
            done.result()


X = random_bytes((300, 500), "f4")  # past where the GIL is released, and where gpumem's own threads come in
SQUARE = random_bytes((320, 320), "u2")
SMALL = random_bytes((5, 7, 3), "V3")
COUNTS = np.arange(90_000, dtype="i4").reshape(300, 300)
RECORDS = random_bytes(4000, [("a", "u1"), ("b", "f8"), ("c", "i2", (3,))])
for shared in (X, SQUARE, SMALL, COUNTS, RECORDS):
    shared.flags.writeable = False


def transposes():
    assert same(gpumem.transpose(X), X.T)
    assert same(gpumem.permute_dims(SMALL, (2, 0, 1)), SMALL.transpose(2, 0, 1))
    assert same(gpumem.matrix_transpose(SQUARE), SQUARE.T)


def copies():
    assert same(gpumem.copy(X[::-1, ::2]), X[::-1, ::2])


def writes_to_out():
    out = np.empty((500, 300), "f4")
    assert gpumem.transpose(X, out=out) is out
    assert same(out, X.T)


def transposes_in_place():
    mine = SQUARE.copy()
    gpumem.transpose(mine, out=mine)
    assert same(mine, SQUARE.T)


def sums():
    assert same(gpumem.sum(COUNTS, axis=0), COUNTS.sum(axis=0))
    assert gpumem.sum(COUNTS.astype(">i4")) == COUNTS.sum()


def converts_records():
    planes = gpumem.to_soa(RECORDS)
    assert all(same(planes[name], np.ascontiguousarray(RECORDS[name])) for name in RECORDS.dtype.names)
    assert same(gpumem.to_aos(planes, dtype=RECORDS.dtype), RECORDS)


def sets_the_thread_count():
    for count in (1, 3, 2):
        gpumem.set_num_threads(count)
        assert gpumem.get_num_threads() in (1, 2, 3)


SHARED = gpumem.copy(Producer(COUNTS))


def exports():
    assert same(np.from_dlpack(SHARED), COUNTS)
    assert same(np.asarray(SHARED), COUNTS)
    for options in ({}, {"max_version": (1, 3)}, {"max_version": (1, 3), "copy": True}):
        SHARED.__dlpack__(**options)  # dies unused
        assert same(np.from_dlpack(gpumem.copy(Hands(SHARED.__dlpack__(**options)))), COUNTS)


def imports():
    for kind in {}, {"kind": Legacy}:
        producer = Producer(X, **kind)
        assert same(np.from_dlpack(gpumem.transpose(producer)), X.T)
        assert (producer.exported, producer.deleted) == (1, 1)


@FromPyObject
def from_py_object(array, out):
    out[0] = ctypes.addressof(array.managed())
    return 0


TABLE = ExchangeApi(major=1, minor=3, from_py_object=from_py_object)
TABLE_NAME = b"dlpack_exchange_api"  # of which the capsule keeps the address only


class Tabled(Producer):
    """What an exchange table hands out."""

    __dlpack_c_exchange_api__ = api.PyCapsule_New(ctypes.addressof(TABLE), TABLE_NAME, None)
    __dlpack__ = None


def imports_by_table():
    producer = Tabled(X)
    assert same(np.from_dlpack(gpumem.transpose(producer)), X.T)
    assert (producer.exported, producer.deleted) == (1, 1)


KERNEL = gpumem.Kernel(gpumem.examples.COPY)


def traces():
    line = np.ascontiguousarray(X[0])
    for kernel in (KERNEL, gpumem.Kernel(gpumem.examples.COPY)):
        out = np.zeros_like(line)
        trace = kernel.trace(4, 128, out, line, len(line), machine_code=False)
        assert same(out, line)
        assert trace.counters["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 16
        assert not trace.findings


def lists():
    assert len({stage.name for stage in gpumem.stages("transpose", "cpu")}) == 5
    for stage in gpumem.stages("copy", "cpu"):
        assert same(gpumem.copy(SQUARE, stage=stage.name), SQUARE)
    assert gpumem.info().to_dict()["threads"] >= 1


def climbs():
    assert gpumem.ladder("transpose", (40, 30), repeat=1, progress=False)["tuned"].bytes == 2 * 4 * 40 * 30


def fails():
    for error, wrong in [
        (TypeError, lambda: gpumem.transpose([1])),
        (ValueError, lambda: gpumem.transpose(X, (0, 0))),
        (ValueError, lambda: gpumem.transpose(X, out=np.empty((2, 2), "f4"))),
        (ValueError, lambda: gpumem.copy(SQUARE.T, out=SQUARE)),
        (ValueError, lambda: gpumem.copy(X, stage="none")),
        (ValueError, lambda: gpumem.sum(X, axis=5)),
        (TypeError, lambda: gpumem.sum(X, dtype="i1")),
        (ValueError, lambda: gpumem.set_num_threads(0)),
        (BufferError, lambda: gpumem.copy(Producer(X, version=(2, 0)))),
        (TypeError, lambda: gpumem.to_aos([X, [1]])),
        (ValueError, lambda: gpumem.Kernel("not PTX")),
    ]:
        with pytest.raises(error):
            wrong()


CALLS = [
    transposes, copies, writes_to_out, transposes_in_place, sums, converts_records, sets_the_thread_count, exports,
    imports, imports_by_table, traces, lists, climbs, fails,
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_the_same_call(call):
    storm([call], 0.1)


def test_all_kinds_of_calls():
    storm(CALLS, 1.0)


def test_of_many_threads_one_takes_a_capsule():
    """Two that did would free the memory twice."""
    array, start = gpumem.copy(Producer(np.arange(3))), threading.Barrier(THREADS)
    hands = [Hands(array.__dlpack__(max_version=(1, 3))) for _ in range(50_000 if FREE_THREADED else 1000)]

    def takes(each):
        try:
            gpumem.copy(each)
        except BufferError:
            return False
        return True

    def take_all():
        start.wait()
        return sum(takes(each) for each in hands)

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(done.result() for done in [pool.submit(take_all) for _ in range(THREADS)]) == len(hands)


def test_a_cuda_array_interface_that_another_thread_changes():
    """No entry is gone while it is read. All that this one ever says is refused before a device is asked for."""
    interface = {"version": 3, "data": (0, False), "typestr": "<f4", "shape": (4, 3), "strides": (13, 4)}
    array = type("Array", (), {"__cuda_array_interface__": interface})()
    stop = threading.Event()

    def change():
        while not stop.is_set():
            for size in (4, 8):
                interface.update(typestr=f"<f{size}", shape=(size, 3), strides=(size * 3 + 1, size))

    other = threading.Thread(target=change)
    other.start()

    def refused():
        for _ in range(100):
            try:
                gpumem.copy(array)
            except BufferError:
                continue
            raise AssertionError("taken")

    try:
        storm([refused], 1.0)
    finally:
        stop.set()
        other.join()


def run(code: str, *options: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=600, check=True
    ).stdout


@pytest.mark.skipif(not FREE_THREADED, reason="this Python has a GIL")
def test_import_leaves_the_gil_off():
    code = "import sys, gpumem; gpumem.sum(__import__('numpy').ones(9)); print(sys._is_gil_enabled())"
    assert run(code, "-W", "error") == "False\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="all interpreters of a process share one GIL up to Python 3.11")
def test_an_interpreter_with_its_own_gil_is_refused():
    """NumPy cannot be in two interpreters of a process, so gpumem cannot be either."""
    inner = "try: import gpumem\nexcept ImportError as error: print(error, flush=True)"
    code = f"""
import sys
if sys.version_info < (3, 13):
    import _xxsubinterpreters as interpreters
    made = interpreters.create(isolated=True)
else:
    import _interpreters as interpreters
    made = interpreters.create("isolated")
interpreters.run_string(made, {inner!r})
"""
    assert run(code) == "module gpumem._core does not support loading in subinterpreters\n"
