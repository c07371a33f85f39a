# Two commands matter: `make demo` and `make test`. Each sets everything up by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready

.PHONY: help demo test lint kernels bytecode format golden-runs validate mutants torture reproduce bench bench-gauntlet bench-epsilon bench-budgets bench-certainty bench-curve bench-plans bench-field bench-models docs docs-figures screenshots dist clean

help:
	@echo "make demo      set up and run a whole study on real measurements (seconds)"
	@echo "make test      set up, lint and run every test"
	@echo "make lint      ruff, mypy --strict, import-linter"
	@echo "make format    let ruff rewrite the code"
	@echo "make golden-runs  which of 1,400 runs decide otherwise than with the commit BASE (two minutes)"
	@echo "make validate  up to 10,000 runs of every strategy: is delta kept? (hours; goes on where it stopped)"
	@echo "make mutants   break constants one at a time: does a test notice each? (20 minutes)"
	@echo "make torture   1,000 kills, 8 writers, 10,000 bad requests, random lives: is anything lost? (over an hour)"
	@echo "make reproduce the paper's experiments in full (half an hour; goes on where it stopped)"
	@echo "make bench     measure designs and strategies beside cvxpy and NumPy (about 20 minutes)"
	@echo "make bench-gauntlet  pulls of the gauntlet over the lower bound, beside 0.1.0 (two hours; goes on where it stopped)"
	@echo "make bench-epsilon  pulls until an arm within epsilon is found, beside ranking and selection (an hour; goes on where it stopped)"
	@echo "make bench-budgets  errors after a fixed budget, beside all rivals and the limit (many hours; goes on where it stopped)"
	@echo "make bench-certainty  whether a choice is right as often as its study says (ten minutes)"
	@echo "make bench-curve  error against budget, the picture of docs/budget.md (half an hour; goes on where it stopped)"
	@echo "make bench-plans  whether studies need what their plans say (an hour; goes on where it stopped)"
	@echo "make bench-field  every strategy on every instance (an hour; goes on where it stopped)"
	@echo "make bench-models  how often a bend stays hidden, and what the check costs (an hour; goes on where it stopped)"
	@echo "make docs      build the documentation"
	@echo "make docs-figures   draw its pictures again"
	@echo "make screenshots    photograph the page again (needs Chromium)"
	@echo "make dist      build wheel and sdist, try them in clean environments, with each extra"
	@echo "make clean     remove the environment and everything built"

# The environment is made once and again only when its description changes. The demonstration needs charts and
# tables; tests, documentation and benchmarks need more.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "finalist needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version)." \
	         "Use: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up $(VENV) (once, about a minute)..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable '.[charts,tables]'
	@touch $@

$(READY): $(INSTALLED)
	@echo "Adding what tests and documentation need (once)..."
	@$(PIP) --editable '.[dev,docs]'
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/finalist demo --out demo

# BLAS threads would fight with the test processes. Each of those gets a part of the files, so that servers
# and other fixtures of a file are set up once, and takes over from the others when it is done. There is one
# more than a machine with two cores has: about a quarter of the time of a process is waiting, for servers,
# browsers and the time that something has to take.
WORKERS ?= 3
test: export OMP_NUM_THREADS := 1
test: export OPENBLAS_NUM_THREADS := 1
# Tests start hundreds of processes: Python is to keep its bytecode, whatever this shell says.
test: export PYTHONDONTWRITEBYTECODE :=
# Studies wait for the disk after each result: their files are in memory if there are 4 GB of it, else in /tmp.
test: export PYTEST_DEBUG_TEMPROOT := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "/dev/shm"}')
test: $(READY)
	@$(MAKE) --no-print-directory -j 3 lint kernels bytecode
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore tests/contracts --ignore tests/properties
	@echo "What all strategies and designs have in common, with the shapes of all arrays checked:"
	@FINALIST_SHAPES=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/contracts tests/properties

# What both processes of the tests would do at the same time is done once, beside the lint.
kernels: $(READY)
	@$(BIN)/python -m tests.warm

bytecode: $(READY)
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# On one machine: hashes of runs may differ between processors.
BASE ?= 855b9b6
golden-runs: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.golden_runs --compare $(BASE)

# Results are kept in validity.sqlite; delete it to measure again.
validate: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.statistical.validity
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.statistical.gauntlet_validity
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.statistical.problem_validity
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.statistical.interval_validity
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.statistical.model_validity

mutants: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutants

torture: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.study.torture
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.study.guards
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.web.torture
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.web.light --turns 6

# Pictures and tables of the documentation; the page and its drawings stay out of the repository.
reproduce: $(READY)
	@$(BIN)/finalist reproduce all --out benchmarks/results/paper

bench: $(READY)
	@status=0; for part in designs strategies studies large field pages equal_shares recovery intervals top_m; do \
	  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.$$part || status=1; \
	done; exit $$status

# Results are kept in gauntlet.sqlite; delete it to measure again. Then the picture of the documentation.
bench-gauntlet: $(READY)
	@status=0; for part in gauntlet gauntlet.picture; do \
	  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.$$part || status=1; \
	done; exit $$status

# Results are kept in epsilon.sqlite; delete it to measure again.
bench-epsilon: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.epsilon

# Results are kept in budgets.sqlite; delete it to measure again.
bench-budgets: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.budgets

# Ten minutes each.
bench-certainty: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.budgets.calibration
bench-curve: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.budgets.curve

# Results are kept in models.sqlite; delete it to measure again.
bench-models: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.models

# Results are kept in plans.sqlite; delete it to measure again.
bench-plans: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.plans

# Results are kept in field.sqlite; delete it to measure again. The page is docs/_build/field/index.html.
FIELD := docs/_build/field
RUNS ?= 100
# RAGE twice: as printed, and with the first gap of its authors' program.
FIELD_STRATEGIES := gauntlet,uniform,g,xy,xy-oracle,xy-adaptive,fully-adaptive,rage,rage:first_gap=1,lingape,lazy-ts,lingame,track-and-stop,lingape:threshold=heuristic,lazy-ts:threshold=heuristic
bench-field: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/finalist benchmark --suite standard \
	  --strategies $(FIELD_STRATEGIES) --runs $(RUNS) --store field.sqlite --out $(FIELD)
	@for picture in $(FIELD)/*.png; do cp $$picture docs/images/field-$$(basename $$picture); done
	@cp $(FIELD)/cells.csv benchmarks/results/field.csv
	@sed 's#](\(.*\.png\))#](../../docs/images/field-\1)#' $(FIELD)/benchmark.md \
	  > benchmarks/results/field.md

docs: $(READY)
	@$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# The pictures of README and docs: the paper's example and the gauntlet, made by the code as it is.
docs-figures: $(READY)
	@$(BIN)/finalist demo --paper --out docs/images
	@rm docs/images/*.csv docs/images/*.svg docs/images/results.sqlite docs/images/shares.png
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/figures.py
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/figure_cap.py
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/figures_tutorial.py
	@$(BIN)/python docs/map.py
	@echo "Pictures that are measured or taken elsewhere: make screenshots, reproduce, bench, bench-curve, bench-field, bench-gauntlet, bench-epsilon, bench-models"

# Every page in light and dark, by the machine's own Chromium.
screenshots: $(READY)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. $(BIN)/python docs/screenshots.py

# What is built is tried as somebody would who has only pip: make dist PYTHONS=python3.12,python3.13
PYTHONS ?=
dist: $(READY)
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist
	@$(BIN)/python -m tests.installations --pythons "$(PYTHONS)"

clean:
	rm -rf $(VENV) demo dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
