"""A CUDA driver that runs on the CPU (tests/native/fake_cuda.cpp): compiles it, and drives it from the tests."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NATIVE = HERE / "native"
KERNELS = HERE.parent / "csrc" / "kernels"
VARIABLE = "GPUMEM_TEST_FAKE_CUDA"  # the library, in the process whose tests run on it


def included(kernels: Path) -> str:
    """C++ that includes a file of kernels; shared arrays that have names and sizes of their own become static."""
    source = kernels.read_text()
    macros = ["__shared__", *re.findall(r"^#define (GM_\w+)\(", source, re.MULTILINE)]
    shared = "" if "extern __shared__" in source else "static"
    after = "".join(f"#undef {name}\n" for name in macros)
    return f'#undef __shared__\n#define __shared__ {shared}\n#include "{kernels}"\n{after}#define __shared__\n'


def build(folder: Path) -> Path:
    """The driver as libcuda.so.1 in `folder`, with every kernel that runs on the CPU."""
    text = "".join(map(included, sorted(KERNELS.glob("*.cu"))))
    source, table, library = folder / "kernels.inc", folder / "table.inc", folder / "libcuda.so.1"
    source.write_text(text)
    flags = ["-std=c++17", "-O1", "-fPIC", f"-I{NATIVE}", "-D_GNU_SOURCE", "-Wno-unknown-pragmas"]
    compiler = [shutil.which("g++") or "g++", *flags, "-x", "c++"]
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # a sanitizer's runtime
    whole = f'#include "cuda_on_cpu.h"\n#include "{source}"\n'
    expanded = subprocess.run(
        [*compiler, "-E", "-P", "-"], input=whole, capture_output=True, text=True, check=True, env=env
    ).stdout
    entries = dict.fromkeys(re.findall(r'extern "C"\s+void\s+(\w+)\s*\(', expanded))
    table.write_text("".join(f"KERNEL({name})\n" for name in entries))
    given = [f'-DFAKE_KERNELS="{source}"', f'-DFAKE_TABLE="{table}"']
    link = ["-shared", "-Wl,-soname,libcuda.so.1", "-o", library]
    subprocess.run([*compiler, *given, NATIVE / "fake_cuda.cpp", *link], check=True, env=env)
    return library


def run_checks(library: Path, *names: str) -> None:
    """Runs files of tests in a process that finds that driver; fails as they do."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), VARIABLE: str(library)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    if "xdist" in sys.modules:
        command += ["-n0"]
    command += [str(HERE / name) for name in names]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=HERE.parent)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


class Driver:
    """The driver in this process."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ[VARIABLE])
        self.library.gm_fake_said.restype = ctypes.c_char_p
        self.library.gm_fake_left.restype = ctypes.c_long

    def run(self) -> None:
        """Everything on all streams happens."""
        self.library.gm_fake_run()

    def oldest_first(self, yes: bool) -> None:
        """Which of the streams that could go on does."""
        self.library.gm_fake_order(int(yes))

    def said(self) -> list[str]:
        """The calls since the last time."""
        return self.library.gm_fake_said().decode().splitlines()

    def fail(self, call: str, error: int, after: int = 0) -> None:
        self.library.gm_fake_fail(call.encode(), after, error)

    def capture(self, stream: int, on: bool) -> None:
        self.library.gm_fake_capture(ctypes.c_ulonglong(stream), int(on))

    def fill(self, address: int, value: int, size: int, stream: int) -> None:
        """Puts a fill on a stream."""
        self.library.gm_fake_fill(ctypes.c_void_p(address), value, ctypes.c_size_t(size), ctypes.c_ulonglong(stream))

    def copy(self, to: int, start: int, size: int, stream: int) -> None:
        """Puts a copy on a stream."""
        pair = (ctypes.c_void_p(to), ctypes.c_void_p(start))
        self.library.gm_fake_copy(*pair, ctypes.c_size_t(size), ctypes.c_ulonglong(stream))

    @property
    def events(self) -> int:
        """Events that exist."""
        return self.library.gm_fake_left(0)

    @property
    def memories(self) -> int:
        """Allocations that exist."""
        return self.library.gm_fake_left(1)

    @property
    def contexts(self) -> int:
        """Contexts that are pushed on this thread."""
        return self.library.gm_fake_left(2)
