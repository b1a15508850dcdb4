"""GPUMEM_ISA, GPUMEM_NUM_THREADS and set_num_threads."""

import os
import re
import subprocess
import sys

import pytest

import gpumem
from gpumem import _core

ISAS = {name: runs for name, _, runs in _core._isas()}

CHECK = """
import numpy as np
import gpumem
from gpumem import _core
rng = np.random.default_rng(0)
stages = {lesson: [stage.name for stage in gpumem.stages(lesson, "cpu")] for lesson in ("transpose", "copy", "reduce")}
for dtype in ["u1", "u2", "V3", "u4", "u8", "V12", "V16"]:
    size = np.dtype(dtype).itemsize
    for shape in [(5, 7), (64, 64), (129, 130), (1000, 3), (33, 1000), (7, 300, 4), (3, 2, 5, 2, 61)]:
        x = np.ndarray(shape, dtype, bytearray(rng.bytes(size * int(np.prod(shape)))))
        for view in [x, x[::-1, 1:], x[..., ::-2]]:
            axes = rng.permutation(view.ndim)
            for stage in stages["transpose"]:
                result = gpumem.permute_dims(view, axes, stage=stage)
                assert result.tobytes() == view.transpose(axes).tobytes(), (stage, dtype)
            for stage in stages["copy"]:
                assert gpumem.copy(view, stage=stage).tobytes() == view.tobytes(), (stage, dtype)
        planes = gpumem.to_soa(x)
        assert gpumem.to_aos(list(planes)).tobytes() == x.tobytes()
    for n in (130, 512, 2053 if size > 1 else 3001):  # the last: past the caches
        x = np.ndarray((n, n), dtype, bytearray(rng.bytes(size * n * n)))
        expected = x.T.tobytes()
        assert gpumem.transpose(x, out=x).tobytes() == expected, (n, dtype)
for dtype in "?bhilBHILefdFD":
    for shape in [(1000,), (37, 41), (5, 6, 70)]:
        x = rng.integers(0, 2, shape).astype(dtype)
        for stage in stages["reduce"]:
            for axis in (None, 0, -1):
                assert (gpumem.sum(x, axis=axis, stage=stage) == np.sum(x, axis=axis)).all(), (stage, dtype)
print(_core._isa(), gpumem.get_num_threads())
"""


def start(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter with these settings and no others of gpumem's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GPUMEM_")}
    environment |= {f"GPUMEM_{name}": value for name, value in settings.items()}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=1200)


@pytest.mark.parametrize("isa", ISAS)
def test_every_isa_variant_gives_the_same_bytes(isa):
    done = start(CHECK, ISA=isa, NUM_THREADS="2")
    if ISAS[isa]:
        assert done.stdout == f"{isa} 2\n", done.stderr
    else:
        assert f"{isa} (does not run here)" in done.stderr


def test_the_best_variant_is_chosen():
    best = next(name for name, runs in ISAS.items() if runs)
    for settings in ({}, {"ISA": ""}):
        assert start("from gpumem import _core; print(_core._isa())", **settings).stdout == f"{best}\n"
    assert list(ISAS)[-1] == "portable"
    assert ISAS["portable"]


def test_an_unknown_variant_is_answered_with_those_there_are():
    done = start("import gpumem", ISA="sse9")
    assert done.returncode == 1
    listed = ", ".join(f"{name} ({'runs' if runs else 'does not run'} here)" for name, runs in ISAS.items())
    assert done.stderr.splitlines()[-1] == f"ImportError: GPUMEM_ISA is 'sse9': there are {listed}"


@pytest.mark.parametrize("command", [["-m", "gpumem"], ["-X", "dev", "-mgpumem"], ["gpumem"]], ids=" ".join)
@pytest.mark.parametrize("variable, value", [("GPUMEM_ISA", "sse9"), ("GPUMEM_NUM_THREADS", "0")])
def test_the_command_says_in_one_line_what_is_wrong_with_a_setting(command, variable, value, tmp_path):
    script = tmp_path / "gpumem"  # as pip writes it
    script.write_text("import sys\nfrom gpumem.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    arguments = [str(script) if part == "gpumem" and len(command) == 1 else part for part in command]
    environment = {**os.environ, variable: value}
    done = subprocess.run([sys.executable, *arguments, "info"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"gpumem: {variable} .*'{value}'.*\n", done.stderr)


def test_threads_are_as_many_as_the_cores_that_may_be_used():
    print_threads = "import gpumem; print(gpumem.get_num_threads())"
    cores = len(os.sched_getaffinity(0))
    assert start(print_threads).stdout == f"{cores}\n"
    assert start("import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); " + print_threads).stdout == "1\n"
    assert start(print_threads, NUM_THREADS="").stdout == f"{cores}\n"
    assert start(print_threads, NUM_THREADS="7").stdout == "7\n"


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "1025", "9" * 30, "2 ", "0x2"])
def test_a_number_of_threads_that_is_none(text):
    done = start("import gpumem", NUM_THREADS=text)
    assert done.returncode == 1
    said = f"ImportError: GPUMEM_NUM_THREADS must be a number from 1 to 1024, not '{text}'"
    assert done.stderr.splitlines()[-1] == said


@pytest.mark.parametrize("count", [0, -1, 1025, 10**30])
def test_set_num_threads_refuses_what_cannot_be(count):
    before = gpumem.get_num_threads()
    with pytest.raises(ValueError, match=f"^{count} threads: there can be 1 to 1024$"):
        gpumem.set_num_threads(count)
    assert gpumem.get_num_threads() == before


@pytest.mark.parametrize("count", [1.0, "2", None])
def test_set_num_threads_wants_an_integer(count):
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        gpumem.set_num_threads(count)
