# Everything here works on a fresh clone with Python 3.11 or newer and Node.js 20 or newer.
PYTHON ?= python3
BIN := .venv/bin

export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

.PHONY: help setup dev check test test-whole test-local test-parts simulate mutants fuzz storm proof lock clean

help: ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: .venv/.ready ## make .venv with everything in it, webhookctl included

.venv/.ready: requirements/build.txt requirements/dev.txt requirements/ingest.txt requirements/replay.txt requirements/processor.txt requirements/verification.txt requirements/handlers.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "webhook-inbox needs Python 3.11 or newer; set PYTHON=…")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--requirement requirements/build.txt --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m stacks.vendor
	@touch $@

dev: setup ## run the inbox on this machine; ARGS="--port 9000" and the like
	@exec $(BIN)/webhookctl dev $(ARGS)

check: setup ## lint, types, import rules, unit tests; a minute and a half
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/unit tests/architecture --quiet --numprocesses 2

test: check ## everything; what waits for other processes beside what computes
	$(MAKE) --jobs=2 --no-print-directory test-whole test-local test-parts

test-whole: setup
	$(BIN)/pytest tests/e2e --quiet

test-local: setup
	$(BIN)/pytest tests/webhookctl/local --quiet

test-parts: setup
	$(BIN)/pytest tests/infra tests/functions tests/contract tests/webhookctl tests/docs tests/simulation --ignore tests/webhookctl/local \
		--quiet --numprocesses 2 --dist loadscope

simulate: setup ## every schedule of small worlds, drawn ones of large worlds; 5 minutes
	$(BIN)/python -m simulation explore
	$(BIN)/python -m simulation walk --seeds 0:3000

mutants: setup ## break the protocol on purpose, fault by fault: the simulation has to see each
	$(BIN)/python -m simulation mutants

fuzz: setup ## 2,000 mangled deliveries of every provider: refused for a reason, all of them; 3 minutes
	$(BIN)/pytest tests/proof/test_every_provider.py --quiet --numprocesses 2

storm: setup ## handlers over HTTP whose downstreams fail, stall and are killed; 5 minutes
	$(BIN)/pytest tests/proof/test_storm.py --quiet

proof: simulate mutants fuzz storm ## what takes too long for every test run

lock: ## write the locks under requirements/ again; needs uv
	scripts/lock.sh

clean: ## forget what was built
	rm -rf .build .local cdk.out .venv
