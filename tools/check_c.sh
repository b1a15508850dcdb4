#!/usr/bin/env bash
# Compiles every C file with warnings as errors, and runs the native checks of every CPU stage: with clang under
# AddressSanitizer and UndefinedBehaviorSanitizer.
# usage: PYTHON=python tools/check_c.sh [COMPILER...]     (default: gcc clang aarch64-linux-gnu-gcc)
# PYTHON has numpy and apache-tvm-ffi, whose headers the bindings include. A cross compiler for aarch64 is given the
# headers of this machine's Python, and its program runs under qemu.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
[ $# -gt 0 ] || set -- gcc clang aarch64-linux-gnu-gcc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

readarray -t include < <("$python" - <<'PY'
import importlib.util, os, sysconfig
import numpy
tvm = importlib.util.find_spec("tvm_ffi").submodule_search_locations[0]
print(sysconfig.get_path("include"), numpy.get_include(), os.path.join(tvm, "include"), sep="\n")
PY
)
# The CUDA back end needs cuda.h; where no toolkit is found, the file that stands in for it is what is checked.
cuda=$("$python" -c 'import sys; sys.path.insert(0, "tools/build"); import cuda_toolkit as c; t = c.find(); print(t.include if t else "")')
sources=(csrc/base/*.c csrc/bind/*.c csrc/cpu/*.c csrc/simt/*.c csrc/cuda/absent.c tests/native/*.c)
if [ -n "$cuda" ]; then
    sources+=($(ls csrc/cuda/*.c | grep -v absent.c))
    include+=("$cuda")
else
    echo "no CUDA toolkit: csrc/cuda is not compiled, but for absent.c"
fi
defines=(-D_GNU_SOURCE -DPy_LIMITED_API=0x030B0000 -DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION
    -DNPY_TARGET_VERSION=NPY_1_25_API_VERSION)
flags=(-std=c11 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Wshadow -Werror)

# Debian's Python.h includes <ARCH/python3.x/pyconfig.h>; for 64-bit Linux this machine's says the same.
version=$(basename "${include[0]}")
mkdir -p "$work/foreign/aarch64-linux-gnu/$version"
for config in "/usr/include/$(uname -m)-linux-gnu/$version/pyconfig.h" "${include[0]}/pyconfig.h"; do
    [ ! -e "$config" ] || { ln -s "$config" "$work/foreign/aarch64-linux-gnu/$version/pyconfig.h"; break; }
done

for cc in "$@"; do
    run=() extra=() rounds=100
    paths=("${include[@]/#/-isystem}")
    case $cc in
    aarch64-*) run=(qemu-aarch64-static -L /usr/aarch64-linux-gnu) paths+=("-isystem$work/foreign") rounds=40 ;;
    # These runtimes do not get on with the address space layout of newer kernels, where it can be fixed.
    clang*)
        # Optimised, the vector kernels take this compiler many minutes to instrument.
        extra=(-g -O0 -fsanitize=address,undefined -fno-sanitize-recover=all)
        ! setarch -R true 2>/dev/null || run=(setarch -R)
        ;;
    esac
    objects=$work/$(basename "$cc")
    mkdir "$objects"
    printf '%s\n' "${sources[@]}" |
        xargs -P "$(nproc)" -I{} sh -c 'out=$1/$(echo "$2" | tr / _).o; shift; file=$1; shift; exec "$@" -c "$file" -o "$out"' \
            sh "$objects" {} "$cc" "${flags[@]}" "${extra[@]}" "${defines[@]}" "${paths[@]}"
    "$cc" "${extra[@]}" -shared -o "$objects/_core.so" "$objects"/csrc_{base,bind,cpu,simt}_*.o "$objects/csrc_cuda_absent.c.o" -pthread
    "$cc" "${extra[@]}" -o "$objects/check_stages" "$objects"/csrc_base_*.o "$objects"/csrc_cpu_*.o \
        "$objects/tests_native_check_stages.c.o" -pthread
    echo "$cc: $(ls "$objects"/*.o | wc -l) files compiled without a warning, _core linked"
    "${run[@]}" "$objects/check_stages" "$rounds"
done
