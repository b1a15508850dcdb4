#!/usr/bin/env python3
"""Compares this package's reading of machine code with nvdisasm's, over cubins and PTX files, for every chip.

usage: tools/compare_readers.py [FILE...]     by default the build's cubins, and tests/data/ptx for seven chips
needs ptxas and nvdisasm; takes some minutes
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from gpumem import cubin, ptxas  # noqa: E402
from gpumem.errors import UsageError  # noqa: E402
from gpumem.sass import Instruction, UnknownInstructionError, sass_access, sass_instructions  # noqa: E402

CHIPS = ("75", "80", "86", "89", "90", "100", "120")


def codes(path: Path) -> list[tuple[str, bytes]]:
    """The machine code of a file: itself, or what ptxas makes of it for each chip that takes it."""
    if path.suffix == ".cubin":
        return [(path.stem.rpartition(".")[2], path.read_bytes())]
    made = []
    for chip in CHIPS:
        text = re.sub(r"^\.target .*", f".target sm_{chip}", path.read_text(), flags=re.MULTILINE)
        try:
            made.append((f"sm_{chip}", ptxas.assemble(text, f"sm_{chip}").cubin))
        except UsageError:
            continue  # has instructions that this chip has not
    return made


def accessed(each: Instruction) -> tuple[int, str | None]:
    try:
        return each.line, sass_access(each.text)
    except UnknownInstructionError:
        return each.line, "unknown"


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]]
    files = files or [*sorted(ROOT.glob("build/kernels/*.cubin")), *sorted((ROOT / "tests/data/ptx").glob("*.ptx"))]
    functions = instructions = wrong = 0
    for path in files:
        for arch, code in codes(path):
            ours, theirs = cubin.functions(code, arch), sass_instructions(ptxas.disassemble(code))
            for name, listed in theirs.items():
                functions, instructions = functions + 1, instructions + len(listed)
                if list(map(accessed, ours.get(name, ()))) != list(map(accessed, listed)):
                    wrong += 1
                    print(f"{path.name}, {arch}: {name} is read differently")
    print(f"{len(files)} files, {functions} functions, {instructions} instructions: {wrong} functions differ")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
