"""The package as it is installed: what importing it loads and starts, what it exports, and that its stubs are right."""

import ctypes
import importlib.metadata
import importlib.resources
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

import gpumem
from gpumem import _core

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")


def run(code, **environment):
    """What `code`, run in a Python of its own, prints."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("folder", ["", "/nowhere"], ids=["as it is", "with an empty library path"])
def test_import_loads_no_driver_and_no_optional_package(folder):
    """CASES B01: a machine without a GPU is a normal machine."""
    printed = run(
        """
        import json, sys
        import numpy
        before = set(sys.modules)
        import gpumem
        with open("/proc/self/maps") as maps:
            mapped = sorted({line.split()[-1] for line in maps if ".so" in line})
        print(json.dumps([sorted(set(sys.modules) - before), mapped]))
        """,
        LD_LIBRARY_PATH=folder or os.environ.get("LD_LIBRARY_PATH", ""),
    )
    modules, mapped = json.loads(printed)
    assert "gpumem._core" in modules
    assert not {module.partition(".")[0] for module in modules} & {"rich", "matplotlib", "torch", "PIL", "tvm_ffi"}
    assert not [path for path in mapped if re.search(r"libcuda|libnv|libgomp", path)]


def test_import_starts_no_thread_and_prints_nothing():
    printed = run("""
        import os
        import numpy  # its BLAS may start threads
        before = len(os.listdir("/proc/self/task"))
        import gpumem
        assert len(os.listdir("/proc/self/task")) == before
    """)
    assert printed == ""


def test_the_extension_needs_nothing_but_the_c_library():
    ldd = subprocess.run(["ldd", _core.__file__], capture_output=True, text=True, check=True).stdout
    needed = {line.split()[0].rpartition("/")[2] for line in ldd.splitlines()}
    sanitizers = {name for name in needed if SANITIZED and re.match(r"lib(a|ub)san|libgcc_s|libstdc|libdl|librt", name)}
    usual = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0"}
    assert {name for name in needed - sanitizers if not name.startswith("ld-linux")} <= usual


def test_the_extension_exports_only_its_entry_point():
    library = ctypes.CDLL(_core.__file__)
    assert library.PyInit__core
    for name in ("gm_plan_make", "gm_cpu_init", "gm_parallel", "gm_numpy_api"):
        assert not hasattr(library, name)


@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED") == 1, reason="free threading has no stable ABI")
def test_the_extension_is_built_for_the_stable_abi():
    assert _core.__file__.endswith("_core.abi3.so")


def test_version_is_the_installed_one():
    assert gpumem.__version__ == importlib.metadata.version("gpumem")


@pytest.mark.parametrize("name", ["py.typed", "_core.pyi", "data/permutations.json"])
def test_files_that_must_be_installed(name):
    assert importlib.resources.files("gpumem").joinpath(name).is_file()


def test_everything_public_is_listed_documented_and_there():
    assert gpumem.__all__ == sorted(gpumem.__all__)
    for name in gpumem.__all__:
        assert getattr(gpumem, name).__doc__, name


OPERATIONS = ["transpose", "matrix_transpose", "permute_dims", "copy", "sum"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_c_functions_with_a_signature(name):
    function = getattr(gpumem, name)
    assert inspect.isbuiltin(function)
    parameters = list(inspect.signature(function).parameters.values())
    assert (parameters[0].name, parameters[0].kind) == ("x", inspect.Parameter.POSITIONAL_ONLY)
    assert {"out", "device", "stage", "stream"} <= {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


@pytest.mark.skipif(SANITIZED, reason="mypy is no code of ours")
def test_stubs_match_the_extension():
    pytest.importorskip("mypy", reason="stubtest comes with mypy")
    result = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "gpumem._core"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_subinterpreter_gets_the_module_or_a_clean_refusal():
    """NumPy decides: it refuses to load twice in a process, or loads with a warning. Never a crash."""
    run("""
        import textwrap
        try:
            import _interpreters as interpreters  # 3.13 and later
        except ImportError:
            import _xxsubinterpreters as interpreters
        import gpumem

        code = textwrap.dedent('''
            import warnings
            warnings.simplefilter("ignore")
            try:
                import numpy, gpumem
                x = numpy.arange(6).reshape(2, 3)
                assert gpumem.transpose(x).tolist() == x.T.tolist()
            except ImportError:
                pass
        ''')
        for _ in range(2):
            interpreter = interpreters.create()
            try:
                failure = interpreters.run_string(interpreter, code)
            finally:
                interpreters.destroy(interpreter)
            assert failure is None, failure
    """)
