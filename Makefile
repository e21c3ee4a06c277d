# What people run. What is made lands in .venv, .venv-wheel, dist and out; `make clean` takes it away.
#   make run     the main job: NestPipe against four other ways to train, at three cluster sizes
#   make quick   while you type: ruff, then the unit and theory tests in the checkout; two minutes
#   make test    the gate, before a change goes in: lint, types, rooms, then the tests against the built wheel
#   make nightly everything: what is too long for the gate, every random example, cold processes; up to an hour
#   make lint    the gates that need no test run          make format   lay out the code
#   make measure the local runs, anew, on an idle machine (about three minutes; shaped links need root;
#                MEASURE_ARGS="--rounds 4" is how those in the tree were made)
#   make record OUT=DIR; make record-compare OLD=DIR NEW=DIR
#                what every command says about every shipped input, and whether it still says the same
#   make bench   the benchmarks (in the checkout)         make docs     the documentation site, in out/site
#   make clean / make distclean
# PYTHON=python3.12 picks an interpreter; PYTEST_ARGS="-x -k sharding" narrows a test run.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := test
.PHONY: run quick test nightly lint format record record-compare bench docs measure wheel clean distclean

VENV := .venv
WHEEL_VENV := .venv-wheel
RECORDINGS := tests/data/local_runs
BIN := $(VENV)/bin
CANDIDATES := $(or $(PYTHON),python3.11 python3 python3.14 python3.13 python3.12 python)
PYTEST_ARGS ?= -q -n 2 --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

run: $(VENV)/.core
	$(BIN)/recscale compare scenarios/nestpipe/npu.yaml \
	  --policies serialized,stale_prefetch,dual_buffer,frozen_window,nestpipe \
	  --workers 128,512,1536 --plot out/nestpipe

quick: $(VENV)/.dev
	$(BIN)/ruff check --quiet .
	RECSCALE_TIER=quick $(BIN)/python -m pytest $(PYTEST_ARGS) -m "not slow and not nightly" \
	  tests/unit tests/theory tests/golden

# The tests see the installed wheel and never the checkout: safe path keeps the working directory off
# sys.path, and tests/conftest.py stops the run when the packages come from anywhere else.
test: TIER := gate
nightly: TIER := nightly
nightly: PYTEST_ARGS += -m ""
test nightly: lint wheel
	RECSCALE_TIER=$(TIER) RECSCALE_TEST_WHEEL=1 PYTHONSAFEPATH=1 PATH="$(CURDIR)/$(WHEEL_VENV)/bin:$$PATH" \
	  $(WHEEL_VENV)/bin/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check . || { echo 'run "make format"' >&2; exit 1; }
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

record: $(VENV)/.dev
	$(BIN)/python tests/kit/recorder.py record $(OUT)

record-compare: $(VENV)/.dev
	$(BIN)/python tests/kit/recorder.py compare $(OLD) $(NEW)

bench: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/benchmarks

measure: $(VENV)/.calibrate
	$(BIN)/recscale calibrate measure --record $(RECORDINGS) --isolate --rounds 1 $(MEASURE_ARGS)

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir out/site

# A venv of its own for the wheel: the product is installed there, and the libraries are lent by .venv
# through a .pth line. Such a line adds one folder and follows none of the .pth files in it, so the
# editable install of .venv, and with it the checkout, stays out of reach.
wheel: $(VENV)/.dev
	rm -rf dist $(WHEEL_VENV)
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	$(BIN)/python -m venv --without-pip $(WHEEL_VENV)
	$(PIP) --python $(WHEEL_VENV)/bin/python install --no-deps dist/*.whl
	site='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	  $(BIN)/python -c "$$site" > "$$($(WHEEL_VENV)/bin/python -c "$$site")/libraries.pth"

$(VENV)/.made:
	@for candidate in $(CANDIDATES); do \
	  "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  "$$candidate" -c 'import ensurepip, venv' 2>/dev/null || { \
	    version=$$("$$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "recscale: $$candidate cannot make virtual environments;" \
	      "on Debian and Ubuntu: apt install python$$version-venv" >&2; exit 1; }; \
	  "$$candidate" -m venv $(VENV); touch $@; exit 0; \
	done; \
	echo "recscale needs Python 3.11 or newer, and none of these is: $(CANDIDATES);" \
	  "name one with make PYTHON=..." >&2; exit 1

$(VENV)/.core: $(VENV)/.made pyproject.toml
	$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) install --editable '.[dev,fast,planner,cluster,calibrate,dashboard,docs]'
	@touch $@

$(VENV)/.calibrate: $(VENV)/.core
	$(PIP) install --editable '.[calibrate]'
	@touch $@

clean:
	rm -rf dist out $(WHEEL_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
