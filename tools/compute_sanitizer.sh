#!/usr/bin/env bash
# Runs the small tests on a GPU under compute-sanitizer: every access of our kernels to memory, and every pair of accesses
# to shared memory that nothing orders. Any report fails the run.
# usage: PYTHON=python3 tools/compute_sanitizer.sh [PYTEST ARGUMENTS...]     TOOLS="memcheck racecheck" says which tools
# PYTHON has gpumem as built (an editable installation, or PYTHONPATH), pytest, numpy and torch.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
toolkit=${CUDA_HOME:-${CUDA_PATH:-/usr/local/cuda}}
tool=$(command -v compute-sanitizer || compgen -G "$toolkit/bin/compute-sanitizer" ||
    compgen -G "$toolkit/compute-sanitizer/compute-sanitizer") || {
    echo "no compute-sanitizer: it is part of the CUDA toolkit, and has to be on PATH" >&2
    exit 2
}
"$python" - <<'PY'
import sys
from gpumem import _core
cuda = _core._cuda()
if not cuda["devices"]:
    sys.exit(f"no CUDA device: {cuda['reason']}")
print(f"{cuda['devices'][0]['name']}, kernels for {cuda['chips']}")
PY

# Kernels are called after their file, or move_.
stems=$(basename -a -s .cu csrc/kernels/*.cu | paste -sd'|')
# PyTorch's cache of memory would let an access beyond an array hit what lies next to it; padding does the rest. Calls of
# the driver that fail are meant to: tests provoke them.
export PYTORCH_NO_CUDA_MEMORY_CACHING=1
options=(--error-exitcode 9 --require-cuda-init no --report-api-errors no --kernel-name "regex=^(move|$stems)_")
declare -A more=([memcheck]="--padding 64 --track-stream-ordered-races all" [racecheck]="--racecheck-report all")
# What takes long, or all the memory, or a process of its own, adds no kernel.
# PyTorch captures no graph without that cache.
slow="graph or threads or gigabyte or 2_31 or thousand or no_memory or fork or big or timing"
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for name in ${TOOLS:-memcheck racecheck}; do
    echo "=== $name"
    # shellcheck disable=SC2086 - words are what they are meant to be
    "$tool" --tool "$name" ${more[$name]:-} "${options[@]}" \
        "$python" -m pytest -m gpu -q -x -p no:cacheprovider -k "not ($slow)" "$@" |& tee "$log" || status=1
    # It ends with 0 where it could not start the program, too.
    grep -Eq '^[0-9]+ passed' "$log" || status=1
done
[ $status -eq 0 ] || echo "=== failed" >&2
exit $status
