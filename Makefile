# Every target sets up what it needs: `make demo` and `make test` work from a clean clone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# What is there: what `pate` needs to run, what its tests need besides, and the linters.
RUNS   := $(VENV)/.runs
STAMP  := $(VENV)/.tests
LINTS  := $(VENV)/.lints
# What is compiled is kept, whatever the environment says: many tests start Python anew. Threads for
# matrices would take turns with the two workers. Memory that is freed is kept for the next array.
PYTEST  = PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 \
          MALLOC_TRIM_THRESHOLD_=134217728 MALLOC_MMAP_THRESHOLD_=33554432 \
          $(BIN)/python -m pytest --quiet -n 2 --dist worksteal
# Without a word on tests that take long.
PATIENT = $(PYTEST) --override-ini=faulthandler_timeout=0
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

.PHONY: setup demo test lint docs

setup: $(STAMP) $(LINTS)

# Compiled at once, since an environment may forbid to keep what is compiled on the way.
$(RUNS): pyproject.toml
	@echo "Setting up $(VENV): half a minute or so, once."
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) .
	$(BIN)/python -m compileall -q pate_cli
	@touch $@

$(STAMP): $(RUNS)
	@echo "Setting up what tests need: a minute or so, once."
	$(INSTALL) '.[test]'
	@touch $@

$(LINTS): $(STAMP)
	$(INSTALL) '.[lint]'
	@touch $@

demo: $(RUNS)
	@rm -rf .demo
	$(BIN)/pate demo .demo

# What people meet comes first: whoever broke that need not wait for the rest.
test: $(STAMP)
	$(PYTEST) tests/face
	$(PYTEST) tests --ignore tests/face

# With every case of what `make test` takes a slice of.
.PHONY: test-all

test-all: $(STAMP)
	PATE_EVERY=1 $(PYTEST) tests

# Forecasts beside what happens to runs of made-up votes, a line for each setting; .02 is too far off.
.PHONY: forecasts

forecasts: $(STAMP)
	PYTHONPATH=tests:tests/support $(BIN)/python -m forecasts.table

# What the public rule gives beside `tune`, on ensembles that it was not chosen on: some minutes.
.PHONY: held-out

held-out: $(STAMP)
	PYTHONPATH=tests:tests/support $(BIN)/python tests/forecasts/held_out.py

lint: $(LINTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What the program itself writes of README.md and of pate_cli/docs, or of one PAGE of them.
docs: $(STAMP)
	PYTHONPATH=tests:tests/support $(BIN)/python tests/readme_blocks.py $(PAGE)

# What every mechanism promises, on whole graphs of neighbours; a count of checks for each.
.PHONY: contract

contract: $(STAMP)
	PATE_EVERY=1 $(PYTEST) tests/mechanisms/test_contract.py

# Random games against budgets, each with its best play computed; GAMES=100000 takes half an hour.
.PHONY: games

games: $(STAMP)
	PYTHONPATH=tests:tests/support $(BIN)/python -m audit.budget_games --games $(or $(GAMES),2000)

# Claimed epsilon beside what draws prove, and the same with planted bugs; tests/audit/README.md.
.PHONY: audit audit-planted mutants

audit: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m audit claims '$(CASE)'

audit-planted: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m audit planted '$(CASE)'

# Changes that break a promise, one of EVERY; EVERY=1 plants all of them, which takes hours.
mutants: $(STAMP)
	PYTHONPATH=.:tests:tests/support $(BIN)/python -m audit.mutants '$(CASE)' --every $(or $(EVERY),8)

# Damaged and odd input of every kind, ROUNDS seeds each; minutes; tests/fuzz/README.md.
.PHONY: fuzz

fuzz: $(STAMP)
	PATE_FUZZ=$(or $(ROUNDS),1000) $(PATIENT) tests/fuzz/test_fuzz.py -k 'read_or_refused and $(or $(CASE),test)'

# Runs, releases and sessions on a disk that fails: HISTORIES of them, or one SEED again, step by
# step; tests/histories/README.md.
.PHONY: histories

ONE = import histories.history as h; print(h.fault_of($(SEED), print) or 'is kept')

histories: $(STAMP)
ifdef SEED
	PYTHONPATH=.:tests $(BIN)/python -c "$(ONE)"
else
	PATE_HISTORIES=$(or $(HISTORIES),100000) $(PATIENT) tests/histories -k promised
endif

# Every leaf of reports forged, singly and consistently; tests/forgeries/README.md.
.PHONY: forgeries

forgeries: $(STAMP)
	PYTHONPATH=.:tests:tests/support $(BIN)/python -m forgeries

# Sessions and runs of each kind killed, KILLS times, as processes of their own; tests/kills/README.md.
.PHONY: kills

kills: $(STAMP)
	PATE_EVERY=1 PATE_KILLS=$(or $(KILLS),200) $(PATIENT) tests/kills

# Whole-process times on made-up votes of up to ROWS rows, beside the table that is kept: fails where a
# line is slower by FACTOR. `bench-docs` keeps the new figures; tests/benchmarks/README.md.
.PHONY: bench bench-docs

MEASURE := PYTHONPATH=tests:tests/support $(BIN)/python -m benchmarks --rows $(or $(ROWS),1e7)

bench: $(STAMP)
	$(MEASURE) --factor $(or $(FACTOR),1.25)

bench-docs: $(STAMP)
	$(MEASURE) --keep

# Tables 1 and 2 of the paper; VOTES is the folder of the authors' files, sample_votes/ without it.
# Tests that need these files find them there, too, or in votes/.
# FORM is text, json or csv.
.PHONY: table1 table2 answers votes

table1 table2: $(RUNS)
	$(BIN)/python -m pate_cli.paper $@ $(if $(VOTES),--votes '$(VOTES)') $(if $(FORM),--form $(FORM))

# Download and verify the authors' files, into votes/ unless VOTES says where.
votes: $(RUNS)
	$(BIN)/python -m pate_cli.paper $@ $(if $(VOTES),--votes '$(VOTES)')

# How many answers an epsilon buys: of the samples and, with VOTES, of the files there; minutes.
answers: $(RUNS)
	$(BIN)/python sample_votes/answers.py $(if $(VOTES),'$(VOTES)')

# Sample ensembles, built again; a student on Adult and two rounds on the digits; pictures.
.PHONY: samples student figures

samples: $(STAMP)
	$(BIN)/python sample_votes/make_demo.py
	$(BIN)/python sample_votes/make_voters.py
	$(BIN)/python sample_votes/make_adult.py
	$(BIN)/python sample_votes/make_digits.py
	$(BIN)/python sample_votes/make_digit_labels.py
	$(BIN)/python sample_votes/make_cells.py
	$(BIN)/python sample_votes/make_glyph_like.py

student: $(STAMP)
	$(BIN)/python sample_votes/student.py
	@echo
	$(BIN)/python sample_votes/two_rounds.py

figures: $(STAMP)
	$(BIN)/python sample_votes/make_figures.py
