"""Finds nvcc and turns the kernels into one C file that holds their machine code and PTX.

Environment: NVCC                the compiler itself
             CUDA_HOME, CUDA_PATH  a toolkit's folder
             GPUMEM_CUDA=0       build without CUDA; =1: a build without it is an error
             GPUMEM_CUDA_ARCHS   chips to make machine code for, such as "80 90" or "all"
             GPUMEM_KERNEL_CACHE   a folder that keeps what is compiled, instead of the build's own
"""

import ctypes
import hashlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ALL_ARCHS = ["75", "80", "86", "89", "90", "100", "120"]
DEFAULT_ARCH = "90"  # where the machine has no GPU to ask
PTX_ARCH = "90"  # what the lens executes, and the driver compiles for chips that are not in the list
# PTX is made for these: what a kernel may ask __CUDA_ARCH__ about. A chip's machine code comes from the last that is
# not beyond it, so that the code for a 90 and what follows is that of the very PTX that the lens executes.
PTX_ARCHS = ["75", "80", PTX_ARCH]
OLDEST = (12, 8)  # nvcc: bulk copies into a block's own shared memory are PTX 8.6; older ones refuse them
USUAL = Path("/usr/local/cuda/bin/nvcc")
# What stands in for a toolkit: these packages together hold nvcc, cicc and ptxas.
PIP_TOOLKIT = "cuda-toolkit[nvcc,nvvm,crt,cccl,cudart]==13.0.*"


@dataclass(frozen=True)
class Toolkit:
    """An nvcc, what it calls itself, and the folder that holds its cuda.h."""

    nvcc: Path
    version: str
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
    found.append(USUAL)
    return found


def _version(nvcc: Path) -> str | None:
    """What nvcc calls itself; None for one that does not run or is too old."""
    try:
        text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    release = re.search(r"release (\d+)\.(\d+), V(\S+)", text)
    return release[3] if release and (int(release[1]), int(release[2])) >= OLDEST else None


def has_host_compiler() -> bool:
    """Whether the C++ compiler that nvcc calls first is there: gcc alone, without g++, will not do."""
    command = [os.environ.get("NVCC_CCBIN") or "gcc", "-E", "-x", "c++", "-"]
    try:
        return subprocess.run(command, input=b"#include <cmath>", capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _include_of(nvcc: Path) -> Path | None:
    root = nvcc.resolve().parent.parent
    names = ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include")
    folders = [root / name for name in names]
    return next((folder for folder in folders if (folder / "cuda.h").exists()), None)


def find(*, pip: bool = True) -> Toolkit | None:
    """The first nvcc that runs, is new enough and has its cuda.h; None where there is none."""
    candidates = _candidates()
    if pip and (packaged := _from_pip()):
        candidates.append(packaged)
    for nvcc in candidates:
        if (version := _version(nvcc)) and (include := _include_of(nvcc)):
            return Toolkit(nvcc, version, include)
    return None


def build_requires() -> list[str]:
    """The pip packages that a build in an environment of its own needs to have an nvcc."""
    needed = wanted() is not False and has_host_compiler() and find(pip=False) is None
    return [PIP_TOOLKIT] if needed else []


def toolkit() -> Toolkit | str:
    """The toolkit to build with; else why there is none. Ends the build where GPUMEM_CUDA=1 and there is none."""
    if wanted() is False:
        return "GPUMEM_CUDA=0"
    found = find()
    if found and has_host_compiler():
        return found
    remedy = f"set NVCC or CUDA_HOME, or pip install '{PIP_TOOLKIT}'"
    why = f"no nvcc of {OLDEST[0]}.{OLDEST[1]} or newer was found ({remedy})"
    if not has_host_compiler():
        why = "nvcc needs a C++ compiler (Debian: apt install g++)"
    if wanted():
        raise SystemExit(f"gpumem: GPUMEM_CUDA=1, but {why}")
    return why


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


def archs(nvcc: Path) -> list[str]:
    """The chips that machine code is made for."""
    asked = os.environ.get("GPUMEM_CUDA_ARCHS", "").replace(",", " ").replace(";", " ").split()
    if asked == ["all"]:
        return ALL_ARCHS
    for arch in asked:
        if not re.fullmatch(r"(sm_)?\d{2,3}a?", arch):
            raise SystemExit(f"gpumem: GPUMEM_CUDA_ARCHS names {arch!r}: give numbers such as '80 90', or 'all'")
    if asked:
        return [arch.removeprefix("sm_") for arch in asked]
    known = _run([nvcc, "--list-gpu-code"]).split()
    return [arch for arch in _archs_seen() if f"sm_{arch}" in known] or [DEFAULT_ARCH]


def _run(command: list[str | Path]) -> str:
    """What a command prints. Ends the build where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gpumem: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def _ptx_arch(chip: str) -> str:
    """What the chip's machine code is made from."""
    number = int(chip.removesuffix("a"))
    return max((arch for arch in PTX_ARCHS if int(arch) <= number), key=int, default=PTX_ARCHS[0])


def _included(source: Path) -> set[Path]:
    """The file and everything of ours that it includes."""
    found, new = set(), {source.resolve()}
    while new:
        found |= new
        named = [(path.parent, name) for path in new for name in re.findall(r'#include "(.+)"', path.read_text())]
        new = {(folder / name).resolve() for folder, name in named} - found
    return found


class Kernels:
    """Compiles kernel files into a folder, each once for as long as its text and the compiler stay the same."""

    FLAGS = ("-O3", "-lineinfo", "-Werror=all-warnings")

    def __init__(self, kit: Toolkit, folder: Path) -> None:
        self._kit, self._folder = kit, folder
        self._cache = Path(os.environ.get("GPUMEM_KERNEL_CACHE") or folder)
        for each in (self._folder, self._cache):
            each.mkdir(parents=True, exist_ok=True)
        # Read here, by one thread: Python 3.11 counts how deep ast.parse is for all threads together.
        self._how = repr((PTX_ARCHS, self.FLAGS, kit.version, inspect.getsource(Kernels))).encode()

    def _key(self, source: Path) -> str:
        parts = [path.read_bytes() for path in sorted(_included(source))]
        parts.append(self._how)
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]

    def _command(self, made: Path, *options: str | Path) -> Path:
        """Makes a file by nvcc, under another name until it is whole, unless it is there already."""
        if not made.exists():
            unfinished = made.with_name(f"{os.getpid()}.{made.name}")
            _run([self._kit.nvcc, *self.FLAGS, *options, "-o", unfinished])
            if made.suffix == ".ptx":
                # Where the sources lay is nobody's business, and the same text is the same file everywhere.
                text = unfinished.read_text()
                text = re.sub(r'(\.file\s+\d+ ")/.*/(csrc/kernels/)', r"\1\2", text)
                unfinished.write_text(re.sub(r'(\.file\s+\d+ ")/.*/include/', r"\1cuda/", text))
            unfinished.replace(made)
        return made

    def ptx(self, source: Path, arch: str) -> Path:
        """The PTX of a source file."""
        made = self._cache / f"{source.stem}.{self._key(source)}.compute_{arch}.ptx"
        return self._command(made, "-std=c++17", f"-arch=compute_{arch}", "-ptx", source)

    def code(self, source: Path, chip: str) -> Path:
        """The machine code of a source file whose PTX has been made."""
        ptx = self.ptx(source, _ptx_arch(chip))
        made = self._cache / f"{source.stem}.{self._key(source)}.sm_{chip}.cubin"
        return self._command(made, f"-arch=sm_{chip}", "-cubin", ptx)

    def bundle(self, source: Path, chips: list[str]) -> Path:
        """Machine code for the chips and PTX for later ones as one file, from which the driver chooses."""
        made = self._folder / f"{source.stem}.fatbin"
        images = [f"--image3=kind=elf,sm={chip},file={self.code(source, chip)}" for chip in chips]
        images.append(f"--image3=kind=ptx,sm={PTX_ARCH},file={self.ptx(source, PTX_ARCH)}")
        # Compressed it is a fifth as large, lines' numbers included.
        tool = self._kit.nvcc.resolve().with_name("fatbinary")
        _run([tool, "-64", "--compress-all", f"--create={made}", *images])
        return made

    def compile(self, sources: list[Path], chips: list[str]) -> list[tuple[Path, Path]]:
        """Of each source file the bundle and the PTX that the lens executes; all processors are put to work."""
        kinds = sorted({PTX_ARCH, *map(_ptx_arch, chips)})
        largest = sorted(sources, key=lambda path: path.stat().st_size, reverse=True)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(lambda job: self.ptx(*job), [(source, kind) for source in largest for kind in kinds]))
            list(pool.map(lambda job: self.code(*job), [(source, chip) for source in largest for chip in chips]))
            bundles = list(pool.map(lambda source: self.bundle(source, chips), sources))
        self._forget(sources)
        return [(bundle, self.ptx(source, PTX_ARCH)) for bundle, source in zip(bundles, sources, strict=True)]

    def _forget(self, sources: Iterable[Path]) -> None:
        """Deletes what was made of an earlier text."""
        for source in sources:
            for path in self._cache.glob(f"{source.stem}.*.*_*.*"):
                if self._key(source) not in path.name:
                    path.unlink(missing_ok=True)


_INCBIN = """__asm__(".section .rodata\\n.balign 64\\n.global gm_{name}\\n.hidden gm_{name}\\ngm_{name}:\\n"
        ".incbin \\"{path}\\"\\n.byte 0\\n.previous\\n");
extern const unsigned char gm_{name}[];
"""


def embed(kit: Toolkit, sources: list[Path], folder: Path) -> Path:
    """Compiles `sources` into `folder` and writes images.c there, where it is to change."""
    chips = archs(kit.nvcc)
    made = Kernels(kit, folder).compile(sources, chips)
    text = ["/* The kernels' machine code and PTX. */", '#include "images.h"']
    rows, entries = [], []
    for index, (source, (bundle, ptx)) in enumerate(zip(sources, made, strict=True)):
        digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
        text.append(f"/* {digest} */")
        for kind, path in (("code", bundle), ("ptx", ptx)):
            text.append(_INCBIN.format(name=f"{kind}_{source.stem}", path=path.resolve()))
        rows.append(f'    {{"{source.stem}", gm_code_{source.stem}, (const char *)gm_ptx_{source.stem}}},')
        entries += [(name, index) for name in re.findall(r"\.entry\s+(\w+)", ptx.read_text())]
    text += ["const gm_image gm_images[] = {", *rows, "};", f"const int gm_image_count = {len(rows)};"]
    named = [f'    {{"{name}", {index}}},' for name, index in sorted(entries)]
    text += ["const gm_entry gm_entries[] = {", *named, "};"]
    text += [f"const int gm_entry_count = {len(entries)};"]
    text += [f'const char gm_image_chips[] = "{" ".join("sm_" + chip for chip in chips)}";', ""]
    images = folder / "images.c"
    if not images.exists() or images.read_text() != "\n".join(text):
        images.write_text("\n".join(text))
    return images
