"""Makes the PTX beside the exercises' CUDA C, so that neither `gpumem exercises` nor the tests need a compiler.

usage: python tools/exercise_ptx.py [--check] [FILE.cu...]     by NVRTC 13.0; --check says which is not current
"""

import re
import sys
from pathlib import Path

from gpumem.compiler import to_ptx

HERE = Path(__file__).resolve().parent.parent
QUESTIONS = [
    HERE / "gpumem" / "data" / "exercises" / name for name in ("01_coalesced", "02_sectors", "04_banks", "09_profile")
]
OTHERS = [HERE / "tests" / "data" / name for name in ("exercises", "advice")]


def sources() -> list[Path]:
    return [folder / "start.cu" for folder in QUESTIONS] + sorted(p for root in OTHERS for p in root.rglob("*.cu"))


def made(source: Path) -> str:
    """The PTX, without the folder and the date of the file."""
    text = to_ptx(source.read_text(), None, "sm_90", source.name).ptx
    return re.sub(r'(\.file\s+\d+) "[^"]*?([^/"]+)"[^\n]*', r'\1 "\2"', text).strip() + "\n"


def current(source: Path) -> bool:
    ptx = source.with_suffix(".ptx")
    return ptx.exists() and ptx.read_text() == made(source)


def main(arguments: list[str]) -> int:
    files = [Path(name) for name in arguments if not name.startswith("--")] or sources()
    old = [source for source in files if not current(source)]
    for source in old:
        print(source)
        if "--check" not in arguments:
            source.with_suffix(".ptx").write_text(made(source))
    return bool(old) and "--check" in arguments


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
