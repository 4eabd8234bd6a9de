# Everything a contributor types. Only Python 3.11+ and make are needed.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
TESTS ?= not soak
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes, which all import the same files

# Parts side by side, the longest first: what mostly waits for processes, what runs the code for a moment or for days of
# its own time, and everything else.
COMPUTING := tests/simulation tests/unit
WAITING := tests/e2e tests/conformance
PYTEST = $(BIN)/pytest -q -p no:cacheprovider -m "$(TESTS)"
SIDE_BY_SIDE := --no-print-directory --jobs=3 --output-sync
FAST := not slow and not soak

LEAGUES ?= packing rigid philly deadline faults prediction
TRACES ?= ../shared/traces

.PHONY: league setup check lint types contracts fast test waiting computing others demo bench soak lock clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m muster.app warm
	touch $(STAMP)

check: lint contracts
	$(MAKE) $(SIDE_BY_SIDE) TESTS="$(FAST)" waiting computing others types

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

fast: setup
	$(MAKE) $(SIDE_BY_SIDE) TESTS="$(FAST)" waiting computing others

test: setup
	$(MAKE) $(SIDE_BY_SIDE) waiting computing others

waiting: setup
	$(PYTEST) $(WAITING)

computing: setup
	$(PYTEST) $(COMPUTING)

others: setup
	$(PYTEST) $(addprefix --ignore=,$(WAITING) $(COMPUTING))

demo: setup
	$(BIN)/python examples/demo.py

bench: setup
	$(BIN)/python -m bench all

# Figures of the proving ground: the leagues on the traces in TRACES, and the page made of them. A league that is not
# among LEAGUES keeps its section.
league: setup
	mkdir -p build/league
	for name in $(LEAGUES); do \
	  $(BIN)/python -m bench league $$name --traces $(TRACES) --published bench/published.csv \
	    --report build/league/$$name.json --report build/league/$$name.html || exit 1; \
	done
	$(BIN)/python -m bench.proving_ground build/league docs/proving-ground.md

soak: setup
	$(BIN)/pytest -q -m soak

lock: pyproject.toml
	$(BIN)/pip-compile --quiet --extra dev --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
