#!/usr/bin/env bash
# Feeds the reader of PTX what libFuzzer makes of tests/data/ptx and tests/fuzz/corpus, under AddressSanitizer and
# UndefinedBehaviorSanitizer. An input that fails is left in build/fuzz: it goes to tests/fuzz/corpus with its fix.
# usage: [PYTHON=python3] tools/fuzz.sh [SECONDS]     needs clang with its runtimes (Debian: clang libclang-rt-dev)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
work=build/fuzz
rm -rf "$work"
mkdir -p "$work/found" "$work/seeds"

sources=(tests/fuzz/fuzz_ptx.c csrc/base/memory.c)
for part in arena lex names number forms raw operands parse parse_variable parse_function parse_inst check print; do
    sources+=("csrc/simt/$part.c")
done
clang -std=c11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=all -o "$work/fuzz_ptx" "${sources[@]}"

# Words to make texts of, and a kernel with one instruction of every form: the table's own.
PYTHONPATH=tests "${PYTHON:-python3}" - "$work" <<'PY'
import sys
from pathlib import Path

from ptx_table import FORMS, MODS, TYPES, module, samples

work = Path(sys.argv[1])
words = {form.name for form in FORMS} | {f".{word}" for word in [*MODS, *TYPES]}
words |= {".version", ".target", ".entry", ".func", ".reg", ".loc", ".file", ".section", ".branchtargets", "%r<10>;"}
words |= {".calltargets", ".callprototype", ".extern", ".align", ".ptr", ".pragma", "generic(", "inlined_at", "%tid.x"}
(work / "words").write_text("".join(f'"{word}"\n' for word in sorted(words)))
each = [next(samples(form)) for form in FORMS if form.op != "CALL"]
for i in range(0, len(each), 40):
    (work / "seeds" / f"forms{i}.ptx").write_text(module(each[i : i + 40], "sm_100a"))
PY
cp tests/data/ptx/reader_*.ptx "$work/seeds"
[ ! -d tests/fuzz/corpus ] || cp tests/fuzz/corpus/* "$work/seeds"

# The runtimes do not get on with the address space layout of newer kernels, where it can be fixed.
run=()
! setarch -R true 2>/dev/null || run=(setarch -R)
"${run[@]}" "$work/fuzz_ptx" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2000 -max_len=65536 \
    -dict="$work/words" -artifact_prefix="$work/" -print_final_stats=1 "$work/found" "$work/seeds" 2>&1 |
    grep -v -e '^#[0-9]*[[:space:]]*\(NEW\|REDUCE\|pulse\|RELOAD\)' -e '^"' -e 'DE: \|recommended dictionary'
