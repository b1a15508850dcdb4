"""What a type checker says about calls of gpumem: the results' types, and the calls that are no good."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import gpumem

# --strict has unused ignores reported: each line that carries one must be an error of that kind.
PROGRAM = """
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import gpumem

x: npt.NDArray[np.float32] = np.zeros((2, 3), np.float32)


class Tensor:
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> Any:
        raise BufferError

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


assert_type(gpumem.transpose(x), npt.NDArray[np.float32])
assert_type(gpumem.transpose(x, (1, 0), out=x, stage="tuned", device="cpu"), npt.NDArray[np.float32])
assert_type(gpumem.permute_dims(x, [1, 0]), npt.NDArray[np.float32])
assert_type(gpumem.matrix_transpose(Tensor()), Tensor)
assert_type(gpumem.copy(Tensor()), Tensor)
assert_type(gpumem.sum(Tensor(), axis=(0, 1), keepdims=True), Tensor)
assert_type(gpumem.get_num_threads(), int)
rows: list[gpumem.Stage] = gpumem.stages("transpose")
assert_type(gpumem.stages()[0].name, str)
assert_type(gpumem.info(), gpumem.Info)
assert_type(gpumem.ladder("copy"), gpumem.Ladder)
gpumem.sum(x, axis=-1, dtype=np.float64)

gpumem.transpose([[1, 2]])  # type: ignore[type-var]
gpumem.transpose(x, axes="10")  # type: ignore[arg-type]
gpumem.transpose(x=x)  # type: ignore[call-arg]
gpumem.permute_dims(x)  # type: ignore[call-arg]
gpumem.copy(x, None)  # type: ignore[call-arg]
gpumem.transpose(x, stage=3)  # type: ignore[arg-type]
gpumem.copy(x, stream="1")  # type: ignore[arg-type]
gpumem.copy(Tensor(), stream=1)
gpumem.set_num_threads("2")  # type: ignore[arg-type]
gpumem.stages()[0].name = "new"  # type: ignore[misc]
"""


def test_what_mypy_says(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    # mypy finds installed packages, but no editable ones.
    package = Path(gpumem.__file__).parents[1]
    path = {} if package == Path(sysconfig.get_path("platlib")) else {"MYPYPATH": str(package)}
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--cache-dir",
            str(tmp_path / "cache"),
            "program.py",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **path},
    )
    assert result.returncode == 0, result.stdout + result.stderr
