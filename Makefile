# The commands of the house. A machine needs Python 3.11 to 3.13, make, git and PyPI; nothing else is assumed.

PYTHON ?= python3
# One more than there are cores: many tests wait for processes and cycles.
PYTEST_WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# What Python has compiled is kept, whatever the shell says: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup up test test-clis test-vendors test-kubernetes mutants check bench soak rules docs walk format lock system-packages

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

setup: $(STAMP) ## the virtual environment, with the package in editable mode

# The stamp is written last, so an interrupted installation is done again.
$(STAMP): pyproject.toml requirements-dev.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# uv takes seconds where pip takes minutes; where it does not get through, pip does all of it.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep '^uv==' requirements-dev.txt) \
		&& $(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-dev.txt \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# `exec` makes fractal the process that gets make's signals: Ctrl-C and SIGTERM end all it started.
up: setup ## control plane, agent, dashboard and sandbox clouds, with a sample (UP_SAMPLE=0: without)
	@exec $(BIN)/fractal up

system-packages:
	@scripts/system-packages
	@scripts/vcsim build >/dev/null || echo "vcsim: not built; the tests over vSphere are skipped" >&2

test: setup system-packages ## the whole test suite
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup -rs $(PYTEST_ARGS)

# Some vendors' command lines are 700 MB each: they have environments of their own, and their tests this target.
test-clis: setup system-packages ## the tests that run az, govc and other big command lines, which are installed for it
	scripts/clis install
	@scripts/vcsim build-govc >/dev/null || echo "govc: not built; the tests that type its commands are skipped" >&2
	PATH="$$(scripts/clis path):$$PATH" $(BIN)/python -m pytest -m "clis and not soak" -n $(PYTEST_WORKERS) \
		--dist loadgroup -rs $(PYTEST_ARGS)

# The vendors' packages are big too: an environment of their own, from which the tables of their contracts are made.
test-vendors: setup system-packages ## what is sent, answered and read, held against the vendors' own contracts
	scripts/vendors install
	PYTEST_WORKERS=$(PYTEST_WORKERS) scripts/vendors run $(PYTEST_ARGS)

# What a cluster is part of, by the names of tests, files and folders.
KUBERNETES := kubernetes or ambassador or K8sIo or V1ServiceAccount or kubectl or in_a_cluster or across_clouds or gcp_database or postgres_server

# On one worker: there is one server, and every test empties it.
test-kubernetes: setup ## all tests of Kubernetes on a real kube-apiserver, which is built, started and stopped for it
	scripts/kube-apiserver run $(BIN)/python -m pytest -m "not soak and not clis and not vendors" -rs tests/offers tests/sandbox/kubernetes \
		tests/faults tests/machine tests/glass tests/linking -k "$(KUBERNETES)" $(PYTEST_ARGS)

# At low priority: it takes two cores for a long time.
mutants: setup ## break the rules, access and the guard on purpose, and fail where no direct test notices
	@nice $(BIN)/python scripts/mutants.py $(MUTANTS)

check: setup ## format, lint, types (also of the code in the docs), import contracts, links, proofs of the rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests examples scripts $(wildcard benchmarks)
	$(BIN)/lint-imports
	@$(BIN)/python scripts/generate.py --check
	@$(BIN)/python scripts/reference.py --check
	@$(BIN)/python scripts/certainty.py --check
	@$(BIN)/python scripts/docs.py
	@$(BIN)/python scripts/typed_docs.py
	@$(MAKE) --no-print-directory rules

rules: setup ## which test proves which rule of docs/protocol.md
	@$(BIN)/python scripts/rules.py

docs: setup ## write docs/reference and what else follows from the offers anew, and check the links of the documentation
	@$(BIN)/python scripts/generate.py
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python scripts/certainty.py
	@$(BIN)/python scripts/docs.py

walk: setup ## the way of one deploy through the code: files and functions in order, and how many they are
	@$(BIN)/python scripts/walk.py

bench: setup ## the benchmarks
	$(BIN)/python -m benchmarks

soak: setup system-packages ## the long tests: many random histories, faults, races
	FRACTAL_SOAK=1 $(BIN)/python -m pytest -m "(soak or hypothesis) and not clis and not vendors and not real_cluster" \
		-n $(PYTEST_WORKERS) --dist loadgroup -rs $(PYTEST_ARGS)

format: setup ## format and fix what can be fixed by a machine
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: setup ## pin every dependency anew in requirements-dev.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --strip-extras --no-emit-index-url \
		--no-emit-find-links --custom-compile-command "make lock" --extra all \
		pyproject.toml requirements-dev.in --output-file requirements-dev.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --strip-extras --no-emit-index-url \
		--no-emit-find-links --custom-compile-command "make lock" requirements-vendors.in \
		--output-file requirements-vendors.txt
