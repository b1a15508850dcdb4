"""Builds the one extension, gpumem._core. Everything static stands in pyproject.toml.

Environment: CC            the compiler
             GPUMEM_WERROR=1               warnings are errors
             GPUMEM_SANITIZE=address,undefined   what to instrument the code with
             GPUMEM_DEBUG=1                keep debug information: 6 MB
             GPUMEM_DLPACK_INCLUDE=DIR     holds dlpack/dlpack.h, instead of apache-tvm-ffi
and those of tools/build/cuda_toolkit.py for the CUDA kernels.
"""

import importlib.util
import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent.resolve()
sys.path.insert(0, str(HERE / "tools" / "build"))
import cuda_toolkit  # noqa: E402

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
SANITIZE = os.environ.get("GPUMEM_SANITIZE", "")
WERROR, DEBUG = (os.environ.get(name, "") not in ("", "0") for name in ("GPUMEM_WERROR", "GPUMEM_DEBUG"))


def files(*patterns: str) -> list[str]:
    return sorted(str(path.relative_to(HERE)) for pattern in patterns for path in HERE.glob(pattern))


def dlpack_include() -> str:
    """The folder that holds the official dlpack/dlpack.h: from the package that ships it, or $GPUMEM_DLPACK_INCLUDE."""
    if folder := os.environ.get("GPUMEM_DLPACK_INCLUDE"):
        return folder
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("gpumem: dlpack.h not found: install apache-tvm-ffi, or set GPUMEM_DLPACK_INCLUDE")
    return str(Path(spec.submodule_search_locations[0]) / "include")


class WithSources(build_py):
    """Packs the CUDA sources of the kernels too: reports show them, line by line."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # there they are read where they lie
            for name in files("csrc/kernels/*.cu", "csrc/kernels/*.cuh", "csrc/kernels/*.h"):
                to = Path(self.build_lib) / "gpumem" / "data" / "kernels" / Path(name).name
                self.mkpath(str(to.parent))
                self.copy_file(name, str(to))


class Build(build_ext):
    """Compiles the C files side by side, and only those that are older than what they may include."""

    def add_kernels(self, ext: Extension) -> None:
        """The CUDA back end where there is an nvcc, and otherwise the one file that says there is none."""
        kit = cuda_toolkit.toolkit()
        absent = "csrc/cuda/absent.c"
        if isinstance(kit, str):
            print(f"gpumem: building for the CPU alone: {kit}", file=sys.stderr)
            ext.sources = [s for s in ext.sources if not s.startswith("csrc/cuda/") or s == absent]
            return
        kernels = [HERE / name for name in files("csrc/kernels/*.cu")]
        images = cuda_toolkit.embed(kit, kernels, HERE / "build" / "kernels")
        ext.sources = [s for s in ext.sources if s != absent] + [os.path.relpath(images, HERE)]
        ext.include_dirs += [str(kit.include), str(HERE / "csrc" / "cuda")]

    def finalize_options(self) -> None:
        given = self.build_temp
        super().finalize_options()
        if given is None:
            # One folder for each kind of object, editable installations included, so that each is compiled once.
            compiler = os.environ.get("CC", "").replace("/", "_")
            kind = [
                sys.implementation.cache_tag,
                "free-threaded" * FREE_THREADED,
                sysconfig.get_platform(),
                compiler,
                *SANITIZE.split(","),
                "debug" * DEBUG,
            ]
            self.build_temp = str(HERE / "build" / "-".join(filter(None, ["temp", *kind])))

    def build_extension(self, ext: Extension) -> None:
        self.add_kernels(ext)
        ext.include_dirs.append(dlpack_include())
        if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
            raise SystemExit("gpumem: Python.h not found: install Python's headers (Debian: apt install python3-dev)")
        compile_one = self.compiler.compile
        newest = max(Path(path).stat().st_mtime for path in ext.depends)

        def compile_all(sources: list[str], output_dir: str, **options: Any) -> list[str]:
            objects = self.compiler.object_filenames(sources, output_dir=output_dir)

            def one(source: str, name: str) -> None:
                made = Path(name)
                if not made.exists() or made.stat().st_mtime <= max(newest, Path(source).stat().st_mtime):
                    made.parent.mkdir(parents=True, exist_ok=True)
                    compile_one([source], output_dir=output_dir, **options)

            with ThreadPoolExecutor(self.parallel or len(os.sched_getaffinity(0))) as pool:
                list(pool.map(one, sources, objects))
            return objects

        self.compiler.compile = compile_all
        try:
            super().build_extension(ext)
        finally:
            self.compiler.compile = compile_one


# _FORTIFY_SOURCE may come with the interpreter's own flags, in another strength.
if SANITIZE:
    safety = [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1"]
else:
    # Python's own flags ask for debug information.
    safety = ["-g" if DEBUG else "-g0", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong"]

# The stable ABI has no free-threaded form yet, so that build is for one Python version.
limited = [] if FREE_THREADED else [("Py_LIMITED_API", "0x030B0000")]

core = Extension(
    "gpumem._core",
    sources=files("csrc/*/*.c"),
    depends=files("csrc/*/*.h", "csrc/*/*.def", "setup.py"),
    include_dirs=[numpy.get_include()],
    define_macros=[
        ("_GNU_SOURCE", None),
        ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
        ("NPY_TARGET_VERSION", "NPY_1_25_API_VERSION"),  # NumPy 1.26 has the C API of 1.25
        *limited,
    ],
    extra_compile_args=[
        *["-std=c11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wshadow"],
        *(["-Werror"] if WERROR else []),
        *safety,
    ],
    extra_link_args=["-pthread", "-Wl,-z,relro,-z,now", *([f"-fsanitize={SANITIZE}"] if SANITIZE else [])],
    py_limited_api=bool(limited),
)

if sys.platform != "linux":
    raise SystemExit(f"gpumem: builds on Linux, not on {sys.platform}")
setup(
    license="Apache-2.0",
    ext_modules=[core],
    cmdclass={"build_ext": Build, "build_py": WithSources},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
