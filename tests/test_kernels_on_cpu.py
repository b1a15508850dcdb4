"""The CUDA kernels that move data, run on the CPU: their source as C++, a block's threads as coroutines.

Each case is a random plan (steps with gaps, reversed axes, any item size, any start) through every kernel that takes
it; every byte of the destination and around it is compared with a plain loop.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOST = ["csrc/base/plan.c", "csrc/cuda/matrix.c", "csrc/cuda/rows.c", "csrc/cuda/stride.c", "csrc/cuda/strip.c"]
HOST += ["csrc/cuda/planes.c", "csrc/cuda/batch.c", "csrc/cuda/tile.c", "csrc/cuda/tile_box.c", "csrc/cuda/tile_turn.c"]
HOST += ["csrc/cuda/fit.c", "csrc/cuda/walk.c", "csrc/cuda/weave.c"]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program."""
    if not shutil.which("gcc") or not shutil.which("g++"):
        pytest.skip("needs gcc and g++")
    folder = tmp_path_factory.mktemp("kernels")
    # The GPU faults on a misaligned access; here the sanitizer does.
    flags = ["-O1", "-D_GNU_SOURCE", "-fsanitize=alignment", "-fno-sanitize-recover=alignment"]
    subprocess.run(["gcc", *flags, "-std=c11", "-c", *(str(ROOT / name) for name in HOST)], cwd=folder, check=True)
    source = ROOT / "tests" / "native" / "check_kernels.cpp"
    objects = [f"{Path(name).stem}.o" for name in HOST]
    subprocess.run(
        ["g++", *flags, "-std=c++17", "-Wno-unknown-pragmas", source, *objects, "-o", "check"], cwd=folder, check=True
    )
    return folder / "check"


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 8])  # of which each has some of every kind
def test_every_byte_is_moved_and_no_other(check: Path, seed: int) -> None:
    done = subprocess.run([check, str(seed), "40"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
