# Every command of the project. `make` alone lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types imports fmt golden docs vendor bench build clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## environment in .venv with pinned versions

$(STAMP): pyproject.toml requirements-dev.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## the main job: a v1 PyTorchJob, the TrainJob it becomes, and the report
	@echo "=== before: examples/pytorchjob.yaml"; echo
	@cat examples/pytorchjob.yaml
	@echo; echo "=== after"; echo
	@report=$$(mktemp); trap 'rm -f "$$report"' EXIT; \
	$(BIN)/migrate examples/pytorchjob.yaml --fail-on error 2> "$$report"; code=$$?; \
	echo; echo "=== report (stderr)"; echo; cat "$$report"; exit $$code

test: check ## everything that needs no cluster (what the README says)

check: setup lint types imports docs-check ## lint, types, layers, generated files, tests
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports --no-cache

.PHONY: docs-check
docs-check: setup
	$(BIN)/python tools/gen_docs.py --check
	$(BIN)/python tools/check_overlays.py

fmt: setup ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

golden: setup ## rewrite goldens: cases, trainjobs, rendered overlays
	$(BIN)/python -m pytest --update-golden tests/golden tests/contract

docs: setup ## rewrite docs/rules, migration/FIELDS.md and the table of runtimes
	$(BIN)/python tools/gen_docs.py

vendor: setup ## extract the API facts from the Go modules again (needs Go)
	$(BIN)/python tools/vendor_crds.py

SECONDS_OF_FUZZ ?= 60
.PHONY: fuzz
fuzz: setup ## new random input for every property, for a minute (SECONDS_OF_FUZZ=60)
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS_OF_FUZZ)

bench: setup ## speed and size, as bench/README.md says
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/migrate_speed.py

build: setup ## sdist and wheel in dist/, and the packaging tests
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m pytest -m packaging tests/packaging

.PHONY: image test-train
image: setup ## the training image for CPUs (images/trainer), when something in it has changed
	$(BIN)/python -m tests.cluster image

ARGS ?=
test-train: setup ## tests/train in the training image's libraries (ARGS="tests/train/data -k packing")
	$(BIN)/python -m tests.cluster train-tests $(ARGS)

.PHONY: cluster cluster-down e2e e2e-all
CLUSTER ?= trainjob
TRAINER ?= 2.3.0
export CLUSTER

cluster: setup ## a real kind cluster with Trainer, JobSet, Kueue and the v1 operator (CLUSTER=name TRAINER=2.3.0)
	$(BIN)/python -m tests.cluster up --trainer $(TRAINER) --gpus 16 --workers 1
	$(BIN)/python -m tests.cluster load

cluster-down: setup ## delete it
	$(BIN)/python -m tests.cluster down

e2e: setup ## the cluster tests that CI runs, on the cluster that `make cluster` left
	$(BIN)/python -m pytest tests/e2e -m ci --durations=0 --durations-min=5

e2e-all: setup ## every cluster test; writes docs/evidence.md
	mkdir -p .cache/e2e && echo '[]' > .cache/e2e/evidence-$(TRAINER).json
	$(BIN)/python -m pytest tests/e2e --write-evidence --durations=0 --durations-min=5

.PHONY: matrix
matrix: setup ## the same admission tests on clusters with Trainer 2.2.0, 2.1.0 and 2.0.1
	set -e; for version in 2.2.0 2.1.0 2.0.1; do \
	  export CLUSTER=matrix; $(BIN)/python -m tests.cluster up --trainer $$version; \
	  $(BIN)/python -m pytest tests/e2e -m matrix || { $(BIN)/python -m tests.cluster down; exit 1; }; \
	  $(BIN)/python -m tests.cluster down; \
	done

clean: ## remove what was built
	rm -rf $(VENV) dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
