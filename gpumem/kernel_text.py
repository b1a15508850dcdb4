"""The CUDA sources of the ladder's kernels, by the names that the line information of their machine code has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePath

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE / "data" / "kernels", HERE.parent / "csrc" / "kernels")  # as installed, and in a source tree
OURS = re.compile(r'^\s*\.file\s+\d+\s+"(csrc/kernels/[\w.]+)"', re.MULTILINE)


@cache
def text_of(name: str) -> str | None:
    """A file of the kernels, such as "transpose.cu"; None where it is not here."""
    for folder in FOLDERS:
        if (path := folder / name).is_file():
            return path.read_text(encoding="utf-8")
    return None


def texts(files: Iterable[str]) -> dict[str, str]:
    """Of some paths those that are files of the kernels, by their names, with their texts.

    >>> list(texts(["csrc/kernels/transpose.cu", "include/math.h"]))
    ['transpose.cu']
    """
    names = dict.fromkeys(PurePath(file).name for file in files if PurePath(file).parent.name == "kernels")
    return {name: text for name in names if (text := text_of(name)) is not None}


def texts_in(ptx: str) -> dict[str, str]:
    """The sources that a PTX text of this build was made of."""
    return texts(OURS.findall(ptx))
