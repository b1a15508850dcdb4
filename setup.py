"""Builds the one extension, gpumem._core. Everything static stands in pyproject.toml."""

import importlib.util
import os
import sysconfig
from pathlib import Path

import numpy
from setuptools import Extension, setup

HERE = Path(__file__).parent
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def dlpack_include() -> str:
    """The folder that holds the official dlpack/dlpack.h: from the package that ships it, or $GPUMEM_DLPACK_INCLUDE."""
    if folder := os.environ.get("GPUMEM_DLPACK_INCLUDE"):
        return folder
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("gpumem: dlpack.h not found: install apache-tvm-ffi, or set GPUMEM_DLPACK_INCLUDE")
    return str(Path(spec.submodule_search_locations[0]) / "include")


# The stable ABI has no free-threaded form yet, so that build is for one Python version.
limited = [] if FREE_THREADED else [("Py_LIMITED_API", "0x030B0000")]

core = Extension(
    "gpumem._core",
    sources=sorted(str(p.relative_to(HERE)) for p in HERE.glob("csrc/*/*.c")),
    depends=sorted(str(p.relative_to(HERE)) for p in [*HERE.glob("csrc/*/*.h"), *HERE.glob("csrc/*/*.def")]),
    include_dirs=[numpy.get_include(), dlpack_include()],
    define_macros=[
        ("_GNU_SOURCE", None),
        ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
        ("NPY_TARGET_VERSION", "NPY_1_23_API_VERSION"),
        *limited,
    ],
    extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wshadow"],
    extra_link_args=["-pthread"],
    py_limited_api=bool(limited),
)

setup(ext_modules=[core], options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}})
