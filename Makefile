# `make` alone lists the targets. Everything runs in .venv, made when it is needed, or in the
# virtual environment that is active.

PYTHON ?= python3
VENV := $(if $(VIRTUAL_ENV),$(VIRTUAL_ENV),.venv)
PY := $(VENV)/bin/python
# One stamp for each pair of environment and checkout, newer than pyproject.toml when installed.
STAMP := $(VENV)/.nkic-$(shell pwd -P | cksum | cut -d' ' -f1)
# Workers for the tests: 0 runs them in one process, for a debugger.
JOBS ?= auto
# Each takes a half of the tests in their order, so that few fixtures are made twice.
PYTEST := $(PY) -m pytest -n $(JOBS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup check lint types test test-all fuzz bless bench flames pictures timing schedules faults mutate corpus demo samples \
	placement conformance accuracy grammar docs site man stubs vscode dist clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 12

setup: $(STAMP)  ## install nkic and what its tests need, editable

$(STAMP): pyproject.toml
	@test -x $(PY) || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nkic needs Python 3.11 or newer: make PYTHON=...")'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(PY) -m compileall -q -j 0 nkic grammar  # as pip does for what is not editable
	@touch $(STAMP)

check: lint types test  ## everything that must pass before a commit

lint: $(STAMP)  ## style and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(STAMP)  ## types, strictly
	$(PY) -m mypy

test: $(STAMP)  ## the tests, without the long sweeps
	$(PYTEST) -m 'not slow' $(ARGS)

test-all: $(STAMP)  ## all tests
	$(PYTEST) $(ARGS)

# TARGET is one of parse, neff, npz, ir, kernel, or all of them in turn; SECONDS is for each.
TARGET ?= parse neff npz ir kernel
SECONDS ?= 1800
fuzz: $(STAMP)  ## fuzz what reads strangers' files: make fuzz [TARGET=parse] [SECONDS=600]
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	for target in $(TARGET); do $(PY) -m tests.fuzz $$target --seconds $(SECONDS) || exit 1; done

# Pages of tests/data that are made by asking the code (docs/mutation.md).
PAGES := tests/property/test_stage_pages.py tests/unit/machine/test_cost_pages.py \
	tests/unit/machine/instructions/test_rules.py tests/unit/artifact/test_verify_fields.py \
	tests/unit/compiler/test_allocate.py tests/unit/cli/test_options.py \
	$(wildcard tests/equal/test_*_pages.py)

bless: $(STAMP)  ## accept the present output as expected; review it with git diff
	NKIC_BLESS=1 $(PY) -m pytest -n 0 tests/test_files.py $(PAGES) $(ARGS)

flames: $(STAMP)  ## where the time of each stage goes, as pictures: make flames [ARGS="add 10000 folder"]
	OPENBLAS_NUM_THREADS=1 $(PY) -m tests.bench.flames $(ARGS)

# PEER is a checkout of triton-viz, whose interpreter then gets a column of its own.
PEER ?=
bench: $(STAMP)  ## time the compiler and the simulator: make bench [ARGS=runs] [PEER=folder]
	OPENBLAS_NUM_THREADS=1 $(PY) -m tests.bench $(ARGS) $(if $(PEER),--peer $(PEER))

pictures: $(STAMP)  ## draw the pages' pictures from real runs
	$(PY) -m tests.pictures

timing: $(STAMP)  ## simulated times beside published ones, for docs/measurements.md
	OPENBLAS_NUM_THREADS=1 $(PY) -m tests.timing.left_out
	OPENBLAS_NUM_THREADS=1 $(PY) -m tests.timing

faults: $(STAMP)  ## break schedules and files in every way, and count who notices
	OPENBLAS_NUM_THREADS=1 $(PY) -m tests.faults $(ARGS)

mutate: $(STAMP)  ## change the code at single points, and see whether the tests notice
	OPENBLAS_NUM_THREADS=1 $(PY) -m tests.mutate $(ARGS)

# BASE is a file that `python -m tests.corpus write FILE` wrote before the change.
corpus: $(STAMP)  ## prove that a refactoring changed nothing: make corpus BASE=FILE
	@mkdir -p build
	$(PY) -m tests.corpus write build/corpus.json
	$(PY) -m tests.corpus compare '$(BASE)' build/corpus.json

demo: $(STAMP)  ## compile a sample kernel, run it on data, compare with NumPy
	@$(PY) -m samples.data 01_tensor_add build
	$(VENV)/bin/nkic samples/01_tensor_add/kernel.py -v -o build/tensor_add.neff
	$(VENV)/bin/nki-run build/tensor_add.neff --inputs build/inputs.npz --expected build/expected.npz

samples: $(STAMP)  ## compile, run and compare every sample
	$(PY) -m samples.run $(ARGS)

# NKILIB is a checkout of nki-library, CONFORMANCE the folder with the scripts that run its suite
# (run.sh, quick.txt, quick_trn3.txt); PLATFORM is trn2 or trn3. ARGS are cases, or @ and a list.
PLATFORM ?= trn2
conformance: $(STAMP)  ## run nki-library's suite: make conformance NKILIB=… CONFORMANCE=… [PLATFORM=trn3] [INIT_CHECK=0] [ARGS=…]
	@test -d "$(NKILIB)/src" || { echo "NKILIB must be a checkout of aws-neuron/nki-library"; exit 2; }
	@test -x "$(CONFORMANCE)/run.sh" || { echo "CONFORMANCE must be the folder of the suite's run.sh"; exit 2; }
	NKILIB='$(abspath $(NKILIB))' PYTHON='$(abspath $(PY))' NKI_PLATFORM=$(PLATFORM) \
	NKI_BACKEND=nkic_backend NKI_BACKEND_PATH='$(CURDIR)/tests/conformance' \
	'$(CONFORMANCE)/run.sh' -q -n 2 $(if $(ARGS),$(ARGS),@quick$(if $(filter trn3,$(PLATFORM)),_trn3).txt)

# NKISAMPLES and NKILIB are checkouts; either may be left out. ARGS is a pattern of names.
schedules: $(STAMP)  ## public kernels' schedules beside a bound: make schedules NKISAMPLES=… NKILIB=… [ARGS=…]
	OPENBLAS_NUM_THREADS=1 $(PY) -m tests.timing.library $(if $(NKISAMPLES),--samples '$(NKISAMPLES)') \
		$(if $(NKILIB),--library '$(NKILIB)') $(ARGS)

placement: $(STAMP)  ## how near placement comes to what is in use: make placement NKISAMPLES=… NKILIB=… [ARGS=…]
	$(PY) -m tests.timing.placement $(if $(NKISAMPLES),--samples '$(NKISAMPLES)') \
		$(if $(NKILIB),--library '$(NKILIB)') $(ARGS)

accuracy: $(STAMP)  ## worst errors of public kernels: make accuracy NKISAMPLES=… NKILIB=… [ARGS=…]
	$(PY) -m tests.conformance.samples $(if $(NKISAMPLES),--samples '$(NKISAMPLES)') \
		$(if $(NKILIB),--library '$(NKILIB)') $(ARGS)

grammar: $(STAMP)  ## build the parser's tables anew, after an edit of grammar/nki.lark
	$(PY) -m nkic.source.generate

docs: $(STAMP)  ## write the pages that are made from the tables
	$(PY) -m nkic.machine.instructions.listing > docs/instructions.md

site: $(STAMP)  ## build the documentation as a site: open build/site/index.html
	$(PY) -c 'import material' || $(PY) -m pip install --quiet --disable-pip-version-check --editable '.[site]'
	NO_MKDOCS_2_WARNING=1 OPENBLAS_NUM_THREADS=1 $(PY) -m mkdocs build --strict

man: $(STAMP)  ## write man pages of the commands: build/man (man -M build/man nkic)
	$(PY) -m tests.site.man build/man

stubs: $(STAMP)  ## write type stubs of the modules that pose as nki to nkic/stubs
	$(PY) -m nkic.nki.stubs nkic/stubs

vscode:  ## package the extension of VS Code: build/nkic.vsix (needs npm)
	mkdir -p build/vscode && cp editors/vscode/* LICENSE build/vscode
	cd build/vscode && npm install --no-audit --no-fund && \
		npx vsce package --allow-missing-repository -o ../nkic.vsix

dist: $(STAMP)  ## build the wheel and the source archive in dist/, and check both
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dist]'
	rm -rf dist build/lib && $(PY) -m build --outdir dist
	$(PY) -m twine check --strict dist/*
	$(VENV)/bin/check-wheel-contents dist/*.whl

clean:  ## remove what was built, and .venv
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
