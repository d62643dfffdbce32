# The project's commands. Each does its own set-up: `make demo` and `make test` work in a fresh clone.
#
#   make setup      .venv with the locked dependencies and .venv/bin/gobpm-ray
#   make demo       the main job: three hundred instances on the real engine
#   make test       the tests that fit ten minutes;  make test-long  the others
#   make check      formatting, lint, types, import contracts
#   make format     rewrite the sources as the formatter wants them
#   make bench      every benchmark with few numbers, into benchmarks/results.json; BENCH_ARGS=--full the real ones
#   make lock       resolve requirements*.in into the lock files (needs uv)
#   make clean      remove what the commands above made, the store's data excepted

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
# Stands inside the environment: it goes when the environment goes, and is older than a lock that changed.
STAMP := $(VENV)/.installed
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# The first Python that is new enough; `make setup PYTHON=/path/to/python` chooses another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && { echo "$$p"; break; }; done)
UV ?= $(shell command -v uv 2>/dev/null)

PYTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=

# Compiled once at installation instead of at every start; a surrounding "write no bytecode" would undo that.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.PHONY: help setup check format test test-long demo bench lock clean

help:
	@sed -n 's/^#   //p' Makefile

setup: $(STAMP)

$(STAMP): requirements-dev.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "make: no Python 3.11 or newer found; name one: make setup PYTHON=/path/to/python" >&2; exit 1; fi
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' || { \
		echo "make: $(PYTHON) is not a Python 3.11 or newer" >&2; exit 1; }
	@if ! $(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null; then "$(PYTHON)" -m venv --clear $(VENV); fi
ifneq ($(UV),)
	"$(UV)" pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements-dev.lock
	"$(UV)" pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip --upgrade >/dev/null
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --compile --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $(STAMP)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: $(STAMP)
	$(BIN)/python -m pytest -m "not long" -n 2 --dist loadfile --ignore tests/integration $(PYTEST_ARGS) tests
	$(BIN)/python -m pytest -m "not long" $(PYTEST_ARGS) tests/integration

test-long: $(STAMP)
	$(BIN)/python -m pytest -m long $(PYTEST_ARGS)

demo: $(STAMP)
	$(BIN)/python -m examples.demo $(DEMO_ARGS)

# The peers are installed for it and stay: nothing else needs them.
bench: $(VENV)/.bench-installed
	$(BIN)/python -m benchmarks.suite $(BENCH_ARGS)

$(VENV)/.bench-installed: $(STAMP) requirements-bench.lock
ifneq ($(UV),)
	"$(UV)" pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements-bench.lock
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --compile --require-hashes -r requirements-bench.lock
endif
	@touch $@

# Universal: one lock for every platform and Python that `requires-python` admits.
LOCK = "$(UV)" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate

lock:
	@[ -n "$(UV)" ] || { echo "make lock: uv is not on PATH; name it: make lock UV=/path/to/uv" >&2; exit 1; }
	$(LOCK) requirements.in -o requirements.lock
	$(LOCK) requirements-dev.in -o requirements-dev.lock
	$(LOCK) requirements-bench.in -o requirements-bench.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
