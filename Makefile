# retrax: one command each. `make` alone lists them.
# Everything lives in .venv; nothing is installed outside this folder.

WORKERS ?= 2
# Seconds that `make test-some` takes of the second tier, and of how many parts of it it runs one.
BUDGET ?= 480
PARTS ?= 1

# The first Python that is new enough; override with `make PYTHON=/path/to/python demo`.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python; do \
	if "$$p" -c '$(NEW_ENOUGH)' 2>/dev/null; then echo "$$p"; break; fi; done)

BIN := .venv/bin
ENVIRONMENT := .venv/.stamp-dev
DOCS_ENVIRONMENT := .venv/.stamp-docs
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-some tiers types site coverage docs pictures verify clean distclean

help:
	@echo "make demo     reproduce five papers in quick mode and simulate a heavy top; see demo/"
	@echo "make test     lint, check types, build the documentation, run the tests"
	@echo "make test-all the tests and the second tier: papers in full, kills, forged files, mutants, matrices"
	@echo "make test-some  one of PARTS (1) parts of the second tier, as much as fits into BUDGET seconds (480)"
	@echo "make tiers    time all tests and choose anew which of them make test runs"
	@echo "make coverage run the tests and report the lines and branches that they reach"
	@echo "make docs     build the documentation into site/"
	@echo "make pictures make the pictures of the examples in the documentation again"
	@echo "make verify   measure the order and every claim of every integrator"
	@echo "make clean    remove what the commands above wrote, keep the environment"
	@echo "make distclean  remove the environment too"

# A gallery that is there is left alone; one that was interrupted goes on where it stopped.
demo: $(ENVIRONMENT)
	@mkdir -p demo
	@$(BIN)/retrax run heavy-top -o demo/heavy-top.nc
	@$(BIN)/retrax report demo/heavy-top.nc
	@test -f demo/gallery/index.html || $(BIN)/retrax reproduce all --quick -o demo/gallery
	@echo
	@echo "Look at demo/gallery/index.html (five papers, computed again) and demo/heavy-top.html"
	@echo "(a heavy top) in a browser; neither needs a network."

test: $(DOCS_ENVIRONMENT)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(MAKE) --no-print-directory -j2 types site
	@$(PYTEST)

test-all: test
	@$(PYTEST) -m campaign

tiers: $(ENVIRONMENT)
	@rm -rf .pytest_cache tests/tiers.txt
	@-$(PYTEST) -m "campaign or not campaign" --clock=.pytest_cache/clock
	@$(BIN)/python tests/tiers.py .pytest_cache/clock

test-some: $(ENVIRONMENT)
	@$(BIN)/python tests/shards.py --of $(PARTS) --budget $(BUDGET) --workers $(WORKERS)

types: $(ENVIRONMENT)
	@$(BIN)/pyright

# Not --quiet: that hides warnings from --strict as well.
site: $(DOCS_ENVIRONMENT)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict >.venv/site.log 2>&1 || { cat .venv/site.log; exit 1; }

coverage: $(ENVIRONMENT)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --skip-covered --sort=cover

docs: $(DOCS_ENVIRONMENT)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation is in site/index.html."

pictures: $(ENVIRONMENT)
	@for e in examples/*.py; do \
		$(BIN)/python "$$e" "docs/examples/$$(basename "$$e" .py).png" || exit 1; done

verify: $(ENVIRONMENT)
	@$(BIN)/retrax verify

clean:
	@rm -rf .coverage* demo site build dist .pytest_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	@rm -rf .venv

# The environment, made once and brought up to date when a stamp is older than its sources.

$(BIN)/python:
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || { \
		echo "retrax needs Python 3.11 or newer and found none: install one, or name it, e.g. make PYTHON=/path/to/python3.11" >&2; \
		exit 1; }
	@echo "Creating .venv with $$("$(PYTHON)" --version) ..."
	@"$(PYTHON)" -m venv .venv || { \
		"$(PYTHON)" -m venv --clear --without-pip .venv && \
		"$(PYTHON)" -m pip --python $(BIN)/python install --quiet pip; }

$(ENVIRONMENT): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing retrax and its tools into .venv (a few minutes the first time) ..."
	@$(PIP_INSTALL) -e ".[dev,show]"
	@touch $@

$(DOCS_ENVIRONMENT): $(ENVIRONMENT)
	@$(PIP_INSTALL) -e ".[dev,show,docs]"
	@touch $@
