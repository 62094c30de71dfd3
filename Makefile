# Two commands do everything on a machine that has Python (3.11 to 3.13) and make:
#
#     make study    environment, installation, and the main study with its report
#     make test     environment, installation with test tools, and the test suite (EFFORT=10 draws ten times as much)
#
# make docs builds the site in docs/_build/html, with the notebooks run. make test-slow runs the tests that take longer
# than seconds (every command of the pages, clusters, searches), make test-kernel those that numbers decide as another
# processor would, make coverage which lines the tests of seconds run; make doctor looks at the installation, make lint at style and types; make pages writes the computed
# parts of the pages anew, make results the results of a release, make bench measures what the library itself costs, make
# mutants how many mutants of the heuristics their checks kill, make faults does all the harm it can and counts what comes
# of it, make constraints pins what CI runs with, make dist builds and tries what a release hands out.

PYTHON ?= python3
VENV   ?= .venv
# Public data of the papers, laid out as docs/data.md says; used where it is there.
DATA   ?= ../shared/data
OUT    ?= study
SEED   ?= 1
SHARE  ?= 1

# Modules are compiled once, and not by every process that the tests start.
unexport PYTHONDONTWRITEBYTECODE

BIN   := $(VENV)/bin
GAVEL := $(DATA)/gavel
BENCH := $(if $(wildcard $(GAVEL)/simulation_throughputs.json),--throughputs $(GAVEL)/simulation_throughputs.json --trace $(GAVEL)/msr_seed0_0e4a51.trace)
QUICK := aryl.elastic_allocation.times aryl.placement.heuristic aryl.reclaim.heuristics afs.network_packing gavel.max_min_fairness.times gavel.finish_time_fairness synergy.allocation elasticflow.allocation.times
REAL  := $(if $(wildcard $(GAVEL)/simulation_throughputs.json),--throughputs gavel=$(GAVEL)/simulation_throughputs.json --trace gavel=$(GAVEL)/msr_seed0_0e4a51.trace)

NUMBERS := $(addprefix tests/,instances/test_generators.py instances/test_judge.py gavel/test_fifo.py \
	gavel/test_max_min_fairness.py formulations/engine/test_torture.py formulations/engine/test_verification.py \
	validation/kinds/collection validation/kinds/judge/test_judgement.py)

.PHONY: study test test-kernel test-slow coverage doctor lint format docs pages results bench mutants faults constraints dist clean

study: $(VENV)/.installed
	$(BIN)/optgap study aryl.reclaim aryl.elastic_allocation gavel.max_min_fairness --seed $(SEED) $(REAL) -o $(OUT)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

# The tests that numbers decide, once more under a BLAS kernel that is not the machine's own, as other processors have.
test-kernel: $(VENV)/.installed-test
	OPENBLAS_CORETYPE=$$($(BIN)/python tests/instances/machine.py --other) \
		$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(NUMBERS)

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --cov --cov-report term:skip-covered

doctor: $(VENV)/.installed
	$(BIN)/optgap doctor

# Warnings are errors; a notebook that raises is one.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W -n --keep-going docs docs/_build/html

# What the pages hold that is computed: options, commands, the collection, the claims, the gallery, and what
# the blocks of tutorials print.
pages: $(VENV)/.installed-test
	$(BIN)/python docs/write.py
	$(BIN)/python docs/gallery/make.py
	$(BIN)/python docs/run.py --write docs/tutorials/*.md docs/how-to/*.md

results: $(VENV)/.installed
	$(BIN)/python -m benchmarks.results -o docs/results $(if $(wildcard $(DATA)),--data $(DATA))

# The quick ones, and how times grow (docs/growth.md, some 25 minutes); `python -m benchmarks` lists all tables.
bench: $(VENV)/.installed
	$(BIN)/optgap bench overhead
	$(BIN)/optgap bench gavel $(BENCH)
	$(BIN)/python -m benchmarks $(QUICK) $(if $(wildcard $(DATA)),--data $(DATA))
	$(BIN)/python -m benchmarks.growth

mutants: $(VENV)/.installed
	$(BIN)/python -m benchmarks mutants

# All faults of docs/faults.md; SHARE=0.1 does a tenth of them.
faults: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.faults --seed $(SEED) --share $(SHARE)

constraints: $(VENV)/.installed-dev
	(echo '# The versions that CI runs with (PIP_CONSTRAINT in .ci/run); `make constraints` writes them anew.'; \
	 $(BIN)/python -m pip freeze --exclude-editable) > constraints.txt

# The archives, whether the wheel works where nothing else is, and the collection with its checker.
dist: $(VENV)/.installed-dev
	rm -rf dist build
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/fresh
	build/fresh/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd build && fresh/bin/optgap doctor && fresh/bin/optgap selftest
	$(BIN)/python collection/check.py --pack build/collection.tar.gz

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(OUT) dist build docs/_build docs/api/*.rst docs/notebooks/*.ipynb .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 to 3.13 is needed, PYTHON=$(PYTHON) is " + sys.version.split()[0] if not (3, 11) <= sys.version_info < (3, 14) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-docs

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-docs $(VENV)/.installed-test
