# Every verb sets itself up: python3 (3.11 or newer), make and a package index are enough.
# Two stamps: the core (what `make demo` needs) and all of it (what everything else needs). Both are redone when
# pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.stamp-core
ALL    := $(VENV)/.stamp-all
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

.PHONY: help setup venv demo test lint check format docs clean
.DEFAULT_GOAL := help

help:  ## List the verbs.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(ALL)  ## Make .venv with all that the other verbs need (again when pyproject.toml or constraints.txt change).

# An interrupted or broken .venv is made anew.
venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed, found $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)

$(CORE): pyproject.toml constraints.txt | venv
	@echo "Installing the core into $(VENV) ..." >&2
	@$(PIP) -e .
	@touch $@

$(ALL): pyproject.toml constraints.txt | venv
	@echo "Installing the core, torch and the development tools into $(VENV) (a minute or two) ..." >&2
	@$(PIP) -e '.[dev,torch]'
	@touch $(CORE) $@
