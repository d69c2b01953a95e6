# Every target does its own set-up: it makes .venv from a Python 3.11 or later and installs what it needs, once.
# PYTHON=python3.12 chooses the interpreter, OLDEST_PYTHON that of test-oldest, WORKERS=8 the number of test processes; MINUTES=120 SEED=1000 how
# long and from where `make fuzz` runs; SEED also which sample of the generated tests `make test` runs.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
OLDEST_PYTHON ?= python3.11
WORKERS ?= 2
MINUTES ?= 5
SEED ?= 0
BIN := .venv/bin
, := ,
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of interpreters, each of which would compile the package again: 1.0 s instead of 0.4

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-oldest test-browser test-levels test-arm fuzz lint docs bench test-gpu bench-gpu wheel clean
.SECONDARY:

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: .venv/installed-demo  ## a photograph through one jitted pipeline: writes out/photo.png and out/report.html
	$(BIN)/python examples/photo.py

test: .venv/installed-test  ## the tests, with a sample of the generated ones: SEED=0 chooses it
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --sample $(SEED)

test-all: .venv/installed-test .venv/installed-clients  ## the tests, with every generated case, beside all libraries; then test-oldest
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --all
	$(MAKE) --no-print-directory test-oldest

test-oldest: .venv-oldest/installed  ## the tests with the oldest Python and the oldest allowed version of every dependency
	.venv-oldest/bin/python -m pytest -q -n $(WORKERS) --dist worksteal

test-browser: .venv/installed-test .venv/installed-browser  ## reports, and the site that make docs built, in Chromium (which it installs on Debian or Ubuntu, as root; else says what is missing)
	$(BIN)/python tools/browser.py

test-levels: .venv/installed-test  ## core tests with code for each level of x86-64 that this machine has
	$(BIN)/python tools/platforms.py levels --workers $(WORKERS)

test-arm: .venv/installed-test  ## core tests on emulated AArch64 processors (Debian or Ubuntu, as root, for the emulator)
	$(BIN)/python tools/platforms.py arm --workers $(WORKERS)

fuzz: .venv/installed-test  ## random programs, run in many ways that must agree: MINUTES=5, SEED=0; writes failures to out/fuzz
	$(BIN)/python -m tests.fuzz --seed $(SEED) --minutes $(MINUTES) --workers $(WORKERS)

lint: .venv/installed-lint  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed-bench  ## the benchmarks beside NumPy, torch, JAX and numexpr: writes benchmarks/results
	$(BIN)/python -m benchmarks.run

# $(call with_all_of,modules,target,command): by PYTHON, where it has the modules, else by .venv: a machine with a GPU has its own PyTorch and CuPy
with_all_of = @if $(PYTHON) -c 'import $(1)' 2>/dev/null; then $(PYTHON) $(3); else $(MAKE) --no-print-directory $(2) && $(BIN)/python $(3); fi

test-gpu:  ## the whole op table on a GPU, a sample under compute-sanitizer; says what is missing where there is none
	$(call with_all_of,cupy$(,) hypothesis$(,) llvmlite$(,) ml_dtypes$(,) pytest,.venv/installed-test,tests/gpu)

bench-gpu:  ## the benchmarks of a GPU: writes benchmarks/results; without one, what to expect of an H200
	$(call with_all_of,cupy$(,) llvmlite$(,) ml_dtypes,.venv/installed-bench,-m benchmarks.gpu)

docs: .venv/installed-docs  ## the documentation site in out/site: spelling and links checked, tutorials executed, figures drawn
	$(BIN)/python -m docs.site

wheel: .venv/installed-wheel  ## wheel and sdist in dist/, each tried in a fresh environment
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tools/try_packages.py dist

clean:  ## removes what the other targets made
	rm -rf .venv .venv-oldest build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache docs/tutorials/.ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/created:
	@test -n "$(PYTHON)" || { echo "Hologram needs Python 3.11 or later; set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed-%: pyproject.toml constraints.txt .venv/created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	touch $@

.venv-oldest/installed: pyproject.toml constraints.txt tools/oldest.py
	@command -v $(OLDEST_PYTHON) >/dev/null || { echo "test-oldest needs $(OLDEST_PYTHON); set OLDEST_PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(OLDEST_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python tools/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --constraint .venv-oldest/constraints.txt --editable '.[test]'
	touch $@
