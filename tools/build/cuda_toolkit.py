"""Finds nvcc and turns the kernels into one C file that holds their machine code and PTX.

Environment: NVCC                the compiler itself
             CUDA_HOME, CUDA_PATH  a toolkit's folder
             GPUMEM_CUDA=0       build without CUDA; =1: a build without it is an error
             GPUMEM_CUDA_ARCHS   chips to make machine code for, such as "80 90" or "all"
"""

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ALL_ARCHS = ["75", "80", "86", "89", "90", "100", "120"]
DEFAULT_ARCH = "90"  # where the machine has no GPU to ask
PTX_ARCH = "90"  # what the lens executes, and the driver compiles for chips that are not in the list
# What stands in for a toolkit: these packages together hold nvcc, cicc and ptxas.
PIP_TOOLKIT = "cuda-toolkit[nvcc,nvvm,crt,cccl,cudart]==13.0.*"


@dataclass(frozen=True)
class Toolkit:
    """An nvcc, and the folder that holds its cuda.h."""

    nvcc: Path
    include: Path


def wanted() -> bool | None:
    """What GPUMEM_CUDA asks for: True it must be there, False it must not, None it is taken where it is found."""
    value = os.environ.get("GPUMEM_CUDA", "")
    return None if value == "" else value != "0"


def _from_pip() -> Path | None:
    """The nvcc of the pip packages, which need not be importable yet when a build asks for them."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    return next((path for folder in folders if (path := Path(folder) / "cu13" / "bin" / "nvcc").exists()), None)


def _candidates() -> list[Path]:
    """Where nvcc may be, in the order of preference. Paths from the environment come with stray colons and spaces."""

    def clean(name: str) -> str:
        return os.environ.get(name, "").strip(" :\t")

    found = [Path(clean("NVCC"))] if clean("NVCC") else []
    found += [Path(clean(name)) / "bin" / "nvcc" for name in ("CUDA_HOME", "CUDA_PATH") if clean(name)]
    if on_path := shutil.which("nvcc"):
        found.append(Path(on_path))
    found.append(Path("/usr/local/cuda/bin/nvcc"))
    return found


def _works(nvcc: Path) -> bool:
    try:
        return subprocess.run([nvcc, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _include_of(nvcc: Path) -> Path | None:
    root = nvcc.resolve().parent.parent
    names = ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include")
    folders = [root / name for name in names]
    return next((folder for folder in folders if (folder / "cuda.h").exists()), None)


def find(*, pip: bool = True) -> Toolkit | None:
    """The first nvcc that runs and has its cuda.h; None where there is none."""
    candidates = _candidates()
    if pip and (packaged := _from_pip()):
        candidates.append(packaged)
    for nvcc in candidates:
        if _works(nvcc) and (include := _include_of(nvcc)):
            return Toolkit(nvcc, include)
    return None


def _archs_seen() -> list[str]:
    """Compute capabilities of the GPUs of this machine, by the driver; no driver: none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count, device, major, minor = (ctypes.c_int() for _ in range(4))
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    archs = set()
    for ordinal in range(count.value):
        if driver.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
            continue
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)  # ..._COMPUTE_CAPABILITY_MAJOR
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)  # ..._MINOR
        archs.add(f"{major.value}{minor.value}")
    return sorted(archs, key=int)


def archs() -> list[str]:
    """The chips that machine code is made for."""
    asked = os.environ.get("GPUMEM_CUDA_ARCHS", "").replace(",", " ").replace(";", " ").split()
    if asked == ["all"]:
        return ALL_ARCHS
    for arch in asked:
        if not re.fullmatch(r"(sm_)?\d{2,3}a?", arch):
            raise SystemExit(f"gpumem: GPUMEM_CUDA_ARCHS names {arch!r}: give numbers such as '80 90', or 'all'")
    return [arch.removeprefix("sm_") for arch in asked] or _archs_seen() or [DEFAULT_ARCH]


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gpumem: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def _compile(toolkit: Toolkit, source: Path, folder: Path, chips: list[str]) -> tuple[Path, Path]:
    """The machine code and the PTX of one kernel file."""
    fatbin, ptx = folder / f"{source.stem}.fatbin", folder / f"{source.stem}.ptx"
    flags = ["-O3", "-std=c++17", "-lineinfo", "-Werror=all-warnings"]
    code = [f"-gencode=arch=compute_{chip},code=sm_{chip}" for chip in chips]
    code.append(f"-gencode=arch=compute_{PTX_ARCH},code=compute_{PTX_ARCH}")
    _run([toolkit.nvcc, *flags, *code, "-fatbin", source, "-o", fatbin])
    _run([toolkit.nvcc, *flags, f"-arch=compute_{PTX_ARCH}", "-ptx", source, "-o", ptx])
    return fatbin, ptx


_INCBIN = """__asm__(".section .rodata\\n.balign 64\\n.global gm_{name}\\n.hidden gm_{name}\\ngm_{name}:\\n"
        ".incbin \\"{path}\\"\\n.byte 0\\n.previous\\n");
extern const unsigned char gm_{name}[];
"""


def embed(toolkit: Toolkit, sources: list[Path], headers: list[Path], folder: Path) -> Path:
    """Compiles `sources` into `folder` and writes images.c there, unless it is newer than all of them."""
    chips = archs()
    images = folder / "images.c"
    stamp = f"/* {toolkit.nvcc} {chips} */"
    newest = max(path.stat().st_mtime for path in [*sources, *headers, Path(__file__)])
    if images.exists() and images.stat().st_mtime > newest and images.read_text().startswith(stamp):
        return images
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        made = list(pool.map(lambda source: _compile(toolkit, source, folder, chips), sources))

    text = [stamp, "/* The kernels' machine code and PTX. */", '#include "images.h"']
    rows, entries = [], []
    for index, (source, (fatbin, ptx)) in enumerate(zip(sources, made, strict=True)):
        for kind, path in (("code", fatbin), ("ptx", ptx)):
            text.append(_INCBIN.format(name=f"{kind}_{source.stem}", path=path.resolve()))
        rows.append(f'    {{"{source.stem}", gm_code_{source.stem}, (const char *)gm_ptx_{source.stem}}},')
        entries += [(name, index) for name in re.findall(r"\.entry\s+(\w+)", ptx.read_text())]
    text += ["const gm_image gm_images[] = {", *rows, "};", f"const int gm_image_count = {len(rows)};"]
    named = [f'    {{"{name}", {index}}},' for name, index in sorted(entries)]
    text += ["const gm_entry gm_entries[] = {", *named, "};"]
    text += [f"const int gm_entry_count = {len(entries)};"]
    text += [f'const char gm_image_chips[] = "{" ".join("sm_" + chip for chip in chips)}";', ""]
    images.write_text("\n".join(text))
    return images
