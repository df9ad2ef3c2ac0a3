# Two commands set everything up on a machine with Python 3.11 or later and nothing else:
#   make demo    the site behind the throttle, crawled for half a minute, then served until Ctrl-C
#   make test    ruff, mypy and all tests
# Besides: make long (the tests' long counts, and fuzzing where atheris is installed), make soak (an hour of storm;
# SOAK_SECONDS=86400 for a day), make clean.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

SOAK_SECONDS ?= 3600

.PHONY: demo test long soak lint clean

demo: $(STAMP)
	@$(BIN)/throttle demo

test: lint
	@$(BIN)/python -m pytest -n auto -m "not long"

long: $(STAMP)
	@THROTTLE_LONG=1 $(BIN)/python -m pytest -n auto
	@$(BIN)/python -m tests.hostile.fuzz --runs 200000

soak: $(STAMP)
	@$(BIN)/python benchmarks/soak.py --seconds $(SOAK_SECONDS)

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

$(STAMP): pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; \`$(PYTHON)\` is missing or older. Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
	   uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV) && \
	   uv pip install --quiet --python $(BIN)/python -e '.[all]' -r requirements-dev.txt; \
	 else \
	   $(PYTHON) -m venv $(VENV) || \
	     { echo "Python's venv module is missing (on Debian: apt install python3-venv)." >&2; exit 1; }; \
	   $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]' -r requirements-dev.txt; \
	 fi
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
