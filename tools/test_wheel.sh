#!/usr/bin/env bash
# Runs the tests against the built wheel in a fresh environment from which no compiler can be reached.
# usage: tools/test_wheel.sh PYTHON NUMPY [PYTEST ARGUMENTS...]     e.g. tools/test_wheel.sh python3.12 numpy==1.26.4
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 numpy=$2
shift 2
wheel=$(echo "$PWD"/wheelhouse/*.whl)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q "$wheel[test]" "$numpy"

# Everything on PATH but what compiles.
mkdir "$work/bin"
for tool in /usr/bin/* /bin/*; do
    case ${tool##*/} in
    cc | c++ | c[89]9* | cpp* | gcc* | g++* | clang* | tcc | as | ld | ld.* | *-gcc* | *-g++* | *-cpp* | *-as | *-ld*) ;;
    *) ln -sf "$tool" "$work/bin/${tool##*/}" ;;
    esac
done
# PYTHONSAFEPATH: `python -c` in the checkout must import the wheel too, not the folder gpumem/.
clean=(env -u CC -u CXX PATH="$work/venv/bin:$work/bin" PYTHONSAFEPATH=1 HOME="$work")
"${clean[@]}" bash -c '! command -v gcc cc clang'
"${clean[@]}" python - <<'PY'
import platform, sys, numpy, gpumem, gpumem._core
assert gpumem._core.__file__.startswith(sys.prefix), gpumem._core.__file__
print(f"Python {platform.python_version()}, NumPy {numpy.__version__}, {gpumem._core.__file__}")
PY
"${clean[@]}" pytest -p no:cacheprovider "$@"
