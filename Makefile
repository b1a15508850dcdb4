# make demo and make test set up .venv from nothing and keep it for the next time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := setup.py pyproject.toml $(wildcard csrc/*/*.c csrc/*/*.h csrc/*/*.def csrc/*/*.cu csrc/*/*.cuh tools/build/*.py)
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet

.PHONY: demo test readme lint docs notebooks pairs cross fuzz sanitize wheel clean

demo: $(VENV)/.demo ## the main job on a real photograph, and the transpose ladder of this machine
	@$(BIN)/gpumem demo

test: $(VENV)/.test ## the whole test suite
	@$(BIN)/python -m pytest

readme: $(VENV)/.demo ## writes the generated tables of README.md anew
	@$(BIN)/python tools/readme.py

lint: $(VENV)/.dev ## ruff, mypy, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	clang-format-14 --dry-run -Werror csrc/*/*.[ch] tests/native/*.c tests/fuzz/*.c

docs: $(VENV)/.dev ## the site, in build/docs; a warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --nitpicky --quiet --builder html docs build/docs
	@echo build/docs/index.html

notebooks: $(VENV)/.dev ## every notebook from top to bottom
	$(BIN)/python -m pytest --nbmake --nbmake-timeout=60 notebooks

pairs: $(VENV)/.dev ## notebooks/*.ipynb anew, with outputs, from notebooks/*.py
	$(BIN)/python tools/notebooks.py

cross: $(VENV)/.dev ## every C file with -Werror under gcc, clang and for aarch64, and the native checks
	PYTHON=$(BIN)/python tools/check_c.sh

fuzz: ## a minute of libFuzzer against the reader of PTX
	PYTHON=$(PYTHON) tools/fuzz.sh 60

sanitize: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	PYTHON=$(PYTHON) tools/sanitize.sh --hypothesis-profile=quick

wheel: $(VENV)/.dev ## sdist, wheel and manylinux wheel in wheelhouse/
	PYTHON=$(BIN)/python tools/wheel.sh

clean:
	rm -rf build wheelhouse *.egg-info gpumem/_core.*.so $(VENV)

# One stamp for each set of extras. An editable installation, so that only changed C files are compiled again.
$(VENV)/.demo $(VENV)/.test $(VENV)/.dev: $(VENV)/.%: $(SOURCES) | $(VENV)
	@echo "building gpumem and installing what '$*' needs into $(VENV) ..."
	@$(PIP) --editable '.[$*]'
	@touch $@

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpumem needs Python 3.11 or newer: make PYTHON=...")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "install venv first (Debian: apt install python3-venv)"; exit 1; }
