# Everything stands on `make venv`; each target works from a clean clone and again when repeated.
PYTHON ?= python3
BIN := .venv/bin
# Tests wait more than they compute, so a few more than there are cores.
WORKERS ?= 3
# Where this is set, every process compiles MLflow anew, which takes seconds.
unexport PYTHONDONTWRITEBYTECODE
export LITELLM_LOCAL_MODEL_COST_MAP := True
export MLFLOW_DISABLE_TELEMETRY := true
export DO_NOT_TRACK := true
export GIT_PYTHON_REFRESH := quiet

.PHONY: venv demo test test-slow test-thorough test-libraries test-wheels test-lowest faults check audit docs clean
venv: .venv/.installed

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memtune needs Python 3.11 or newer: make venv PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	touch $@

demo: venv
	$(BIN)/memtune model pull qwen2.5-coder-0.5b
	$(BIN)/memtune run demo

test: venv
	$(BIN)/memtune model pull smollm2-135m
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test-slow: venv
	$(BIN)/memtune model pull smollm2-135m
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m 'slow and not thorough'

# The long forms of slow tests: more moments to kill at, more kinds of faults, older versions of libraries.
test-thorough: venv
	$(BIN)/memtune model pull smollm2-135m
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m thorough

# The proofs of exports to libraries that memtune does not run: each installs one, which takes minutes.
test-libraries: venv
	$(BIN)/python -m pytest -q -m libraries

# The wheel in a clean environment of each of these Pythons, and `memtune run smoke` there: a quarter of an hour or more.
PYTHONS ?= $(PYTHON)
test-wheels:
	PYTHON=$(PYTHON) .ci/wheels $(PYTHONS)

# A quick part of the suite on the lowest versions that pyproject.toml allows.
test-lowest:
	PYTHON=$(PYTHON) .ci/lowest

# Known vulnerabilities of what is installed; asks the advisory service of PyPI, so it needs the network.
audit: venv
	$(PYTHON) -m venv build/audit
	build/audit/bin/pip install --quiet pip-audit
	build/audit/bin/pip-audit --path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" --skip-editable

# Every way to disturb a run that is known; build/faults.json says how many of each kind were tried, and how many failed.
faults: venv
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/faults -m 'not libraries' --faults build/faults.json

check: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documents as a site in build/site; the pages of reference are written from the code. The site links to where this clone is from.
docs: export MEMTUNE_REPOSITORY ?= $(shell git remote get-url origin 2>&1 | sed -nE 's,^(ssh://)?(git@|https://)([^:/]+)[:/](.+)$$,https://\3/\4,; s,\.git$$,,; /^https:/p')
docs: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[docs]'
	$(BIN)/python docs/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:
	rm -rf .venv build ./*.egg-info
