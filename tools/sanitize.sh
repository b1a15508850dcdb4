#!/usr/bin/env bash
# Runs the tests with every C file under AddressSanitizer and UndefinedBehaviorSanitizer.
# usage: PYTHON=python3 tools/sanitize.sh [PYTEST ARGUMENTS...]
#
# Python itself is not instrumented, so the runtimes are preloaded, and its own allocator, which would hide overruns
# inside a pool, gives way to malloc. The interpreter leaks at its end by design: leaks are looked for, written to
# files, and only those with a frame of gpumem's own fail the run.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
python=$work/venv/bin/python
CC=gcc GPUMEM_SANITIZE=address,undefined "$python" -m pip install -q ".[test]"

export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
# No detect_stack_use_after_return: gcc 12 lays 64-byte vectors out misaligned in the frames that it makes for it (PR
# 110027).
export ASAN_OPTIONS=detect_leaks=1:log_path=$work/report:allocator_may_return_null=1:detect_stack_use_after_return=0
export LSAN_OPTIONS=exitcode=0:print_suppressions=0:max_leaks=0
export UBSAN_OPTIONS=print_stacktrace=1
export PYTHONMALLOC=malloc PYTHONSAFEPATH=1
"$python" - <<'PY'
import sys, gpumem._core
assert gpumem._core.__file__.startswith(sys.prefix), gpumem._core.__file__
print("sanitized:", gpumem._core.__file__)
PY
status=0
# Tests of what nvcc makes run no code of ours, and nvcc crashes with this preloaded; the kernels on the CPU are compiled
# by their own test, which checks alignment, and not part of this build. What draws figures and writes pages is Python.
# --capture=sys: what the runtimes write to stderr before they end the process must not end up in pytest's buffer.
"$python" -m pytest --capture=sys -p no:cacheprovider --ignore tests/test_build.py --ignore tests/test_machine_code.py \
    --ignore tests/test_kernels_on_cpu.py --ignore tests/test_plot.py --ignore tests/test_figure_commands.py \
    --ignore tests/test_report.py --ignore tests/test_readme.py --ignore tests/test_live_notebooks.py "$@" || status=$?
unset LD_PRELOAD
"$python" tools/our_reports.py "$work"/report.* || status=1
exit "$status"
