"""Prints what a sanitizer wrote about gpumem's own code, and fails if there was anything.

usage: python tools/our_reports.py REPORT...

Every error counts; a warning is none. A leak counts when a frame of its stack is gpumem's: the interpreter, NumPy and
other extensions leave memory behind at their end.
"""

import re
import sys
from pathlib import Path

ERROR = re.compile(r"ERROR: |runtime error: ")
OURS = re.compile(r"^\s*#\d+ .*(\bcsrc/|/gpumem/_core\.)", re.MULTILINE)


def ours(report: str) -> list[str]:
    """The parts of one report that are about gpumem."""
    if "ERROR: LeakSanitizer" not in report:
        return [report] if ERROR.search(report) else []
    return [leak for leak in re.split(r"\n\s*\n", report) if "leak of" in leak and OURS.search(leak)]


def main(paths: list[str]) -> int:
    found = [part for path in paths if Path(path).exists() for part in ours(Path(path).read_text(errors="replace"))]
    print("\n\n".join(found))
    print(f"sanitizer reports: {len(paths)} read, {len(found)} about gpumem")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
