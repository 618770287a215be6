# Everything here works on a fresh clone with Python 3.11 or newer and Node.js 20 or newer.
PYTHON ?= python3
BIN := .venv/bin

export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

# Bytecode is kept: without it each process compiles pytest's tests and the library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dev check check-types test test-intake test-processing test-stack test-parts test-whole test-local test-browser bench simulate mutants fuzz storm rights incidents scan ratios proof wheel package lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: .venv/.ready ## create .venv with all dependencies and webhookctl

.venv/.ready: requirements/build.txt requirements/dev.txt requirements/reconciler.txt requirements/replay.txt requirements/processor.txt requirements/verification.txt functions/requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "webhook-inbox needs Python 3.11 or newer; set PYTHON=…")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile \
		--requirement requirements/build.txt --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m webhook_inbox_cdk.vendor
	@touch $@

# 20 seconds, and 300 MB; `scan` alone needs it.
.venv-scanners/.ready: requirements/scanners.txt
	$(PYTHON) -m venv --clear .venv-scanners
	.venv-scanners/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--no-compile --no-deps --requirement requirements/scanners.txt
	@touch $@

# Lambda's Python where the machine has it; everything is compiled as the bundle is.
.venv-bench/.ready: requirements/bench.txt
	$$(PYENV_VERSION=3.13 python3.13 -c 'import sys; print(sys.executable)' 2>/dev/null || echo $(PYTHON)) -m venv --clear .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--no-compile --no-deps --requirement requirements/bench.txt
	.venv-bench/bin/python -m compileall -q --invalidation-mode unchecked-hash .venv-bench/lib
	@touch $@

dev: setup ## run the inbox locally; pass options in ARGS, e.g. ARGS="--port 9000"
	@exec $(BIN)/webhookctl dev $(ARGS)

# The unit tests run in two processes of pytest: distributing 15,000 tests to workers costs as much
# CPU as the tests.
UNITS_OF_INTAKE := tests/architecture tests/unit/adapters tests/unit/configuration tests/unit/domain \
	tests/unit/ingest tests/unit/providers tests/unit/testing
PARTS_OF_STACK := tests/infra tests/functions tests/simulation
# They build bundles, as `package` does.
BUNDLES := tests/infra/test_bundles.py tests/infra/test_bytecode.py tests/infra/test_vendor.py
PARTS := tests/contract tests/docs tests/webhookctl --ignore tests/webhookctl/local
# `check` leaves the property-based tests to `test`.
PROPERTIES :=

check: setup ## lint, type check, import rules and unit tests; of one package: PACKAGE=ledger; 2 minutes
ifdef PACKAGE
	@test -d functions/webhook_inbox/$(PACKAGE) && test -d tests/unit/$(PACKAGE) || \
		{ echo "PACKAGE=$(PACKAGE): no package of the library with unit tests has this name" >&2; exit 2; }
	$(BIN)/ruff check functions/webhook_inbox/$(PACKAGE) tests/unit/$(PACKAGE)
	$(BIN)/ruff format --check functions/webhook_inbox/$(PACKAGE) tests/unit/$(PACKAGE)
	$(BIN)/mypy --package webhook_inbox.$(PACKAGE)
	$(BIN)/lint-imports
	$(BIN)/pytest tests/unit/$(PACKAGE) --quiet -m "not hypothesis"
else
	$(MAKE) --jobs=2 --no-print-directory test-intake test-processing check-types PROPERTIES='-m "not hypothesis"'
endif

check-types: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/app --quiet

test-intake: setup
	$(BIN)/pytest $(UNITS_OF_INTAKE) --quiet $(PROPERTIES)

test-processing: setup
	$(BIN)/pytest tests/unit $(UNITS_OF_INTAKE:%=--ignore %) --quiet $(PROPERTIES)

# The longest come first, so that the cores end together. Three at a time, since the sessions of the
# local runtime mostly wait. Two need the browser, which neither may install while the other does.
test: setup ## run lint, types, import rules and tests; 8 minutes
	@$(BIN)/python -m scripts.browser >/dev/null
	$(MAKE) --jobs=3 --no-print-directory test-whole test-stack test-parts test-local test-browser \
		test-intake test-processing check-types

test-whole: setup
	@$(BIN)/python -m scripts.browser >/dev/null
	$(BIN)/pytest tests/e2e --quiet

test-local: setup
	$(BIN)/pytest tests/webhookctl/local --quiet

# Without a Chromium, 70 MB are fetched and 214 MB kept; axe checks accessibility.
test-browser: setup
	@$(BIN)/python -m scripts.browser >/dev/null
	$(BIN)/pytest tests/browser --quiet

test-stack: setup
	$(BIN)/pytest $(PARTS_OF_STACK) $(BUNDLES:%=--ignore %) --quiet

test-parts: setup
	$(BIN)/pytest $(PARTS) --quiet

bench: setup .venv-bench/.ready ## measure ingest against four baselines, and write docs/benchmarks.md; 5 minutes
	$(BIN)/python -m bench

wheel: setup ## build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

package: setup ## install the wheel into an empty directory, and use it as a new user does; build each bundle, and run it as Lambda does; 6 minutes
	$(BIN)/pytest tests/package $(BUNDLES) --quiet

simulate: setup ## simulate every schedule of small worlds and random ones of large worlds; 6 minutes
	$(BIN)/python -m simulation explore
	$(BIN)/python -m simulation nights
	$(BIN)/python -m simulation walk --seeds 0:3000

mutants: setup ## check that the simulation detects each deliberate fault of the protocol
	$(BIN)/python -m simulation mutants

scan: setup .venv-scanners/.ready ## scan the templates and the workflows; 1 minute
	$(BIN)/pytest tests/scanners --quiet

ratios: setup .venv-bench/.ready ## compare ingest's CPU with the bare handler's, and test the benchmarks; 1 minute
	$(BIN)/pytest tests/bench --quiet

fuzz: setup ## check what every provider's malformed, altered and huge deliveries become; 8 minutes
	$(BIN)/pytest tests/proof/test_every_provider.py tests/proof/test_one_signature.py tests/proof/test_rejection_cost.py \
		--quiet --numprocesses 2 --dist worksteal

storm: setup ## run handlers over HTTP against destinations that fail, stall and are killed; 5 minutes
	$(BIN)/pytest tests/proof/test_storm.py --quiet

rights: setup ## remove each right of each function in turn, and expect that something breaks; 2 minutes
	$(BIN)/pytest tests/proof/test_rights.py --quiet

incidents: setup ## resolve scripted incidents on the local runtime, with the runbook's commands and in a browser; 7 minutes
	@$(BIN)/python -m scripts.browser >/dev/null
	$(BIN)/pytest tests/proof/test_incidents.py tests/proof/test_console_incidents.py --quiet

# Two at a time. The simulation has its random walks in two processes; the incidents mostly wait.
proof: setup ## run simulate, mutants, fuzz, storm, rights, incidents, scan and ratios
	$(MAKE) --jobs=2 --no-print-directory simulate incidents mutants fuzz storm rights scan ratios

lock: ## regenerate the lock files under requirements/; needs uv
	scripts/lock.sh

clean: ## delete build output and .venv
	rm -rf .build .local cdk.out dist .venv .venv-scanners .venv-browser .venv-bench
