# Every verb sets itself up: python3 (3.11 or newer), make and a package index are enough.
# Two stamps: the core (what `make demo` needs) and all of it (what the other verbs need). Both are redone when
# pyproject.toml or constraints.txt change.
PYTHON ?= python3
JOBS   ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.stamp-core
ALL    := $(VENV)/.stamp-all
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
LOWEST := graph infer priors shards sums tasks votes test_model.py test_paths.py cli/test_app.py cli/test_fit_label.py
CODE   := $(wildcard src tests benchmarks examples scripts)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-browser test-engines browser lint check format docs bench clean venv

# Our kernels run their own threads; a second pool underneath only competes with them.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# numba keys its cache by file, so a kernel that calls a kernel of another file can be stale there. One folder per
# state of the compiled sources cannot.
test test-browser test-engines coverage docs: export NUMBA_CACHE_DIR ?= $(CURDIR)/.cache/numba/$(shell grep -rl --include='*.py' numba src | LC_ALL=C sort | xargs cat | cksum | cut -d' ' -f1)

help:  ## List the verbs.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(ALL)  ## Make .venv with all that the other verbs need; redone when pyproject.toml or constraints.txt change.

demo: $(CORE)  ## From simulated raw data to labels: apply sources, fit, label, compare.
	@$(BIN)/dugong demo

test: $(ALL)  ## Run the tests. `make test ARGS="-k votes -x"` passes options to pytest.
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope --ignore=tests/browser --ignore=tests/parsers --ignore=tests/store $(ARGS)

test-engines: $(ALL)  ## Install Dask, Ray and Spark, and test them on local clusters (Spark needs Java 17).
	@$(PIP) -e '.[dask,ray,spark]'
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install -qq -y openjdk-17-jre-headless >/dev/null; } || \
	  { echo "error: Spark needs Java 17 or newer; install it first." >&2; exit 1; }
	DUGONG_ENGINES="dask ray spark" $(BIN)/python -m pytest tests/engines $(ARGS)

# A folder beside .venv, because the packages of the store want older versions than our constraints.
.PHONY: test-store
test-store: $(ALL) .venv-store/.stamp  ## Test votes, shards and labels in an S3-compatible server on this machine, whose answers fail, stall, break off or end early.
	DUGONG_STORE=1 PYTHONPATH=$(CURDIR)/.venv-store:$(CURDIR)/src $(BIN)/python -m pytest tests/store $(ARGS)

.venv-store/.stamp: tests/store/requirements.txt | $(ALL)
	@echo "Installing an S3 server and s3fs into $(@D) ..." >&2
	@rm -rf $(@D)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --upgrade --target $(@D) -r $<
	@touch $@

# Parsers that accept what we write, each group in an environment of its own: they contradict each other.
PARSERS ?= light label_studio audio spacy datumaro datasets
.PHONY: test-formats
test-formats: $(ALL) $(PARSERS:%=.venv-parsers/%/.stamp)  ## Let other people's parsers read every format that we write; `PARSERS=light` takes the small ones.
	DUGONG_PARSERS="$(PARSERS:%=$(CURDIR)/.venv-parsers/%)" $(BIN)/python -m pytest tests/parsers tests/formats $(ARGS)

.venv-parsers/%/.stamp: tests/parsers/%.txt
	@echo "Installing the parsers of $< into $(@D) ..." >&2
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@

test-browser: $(ALL) browser  ## Test the report in a real browser: Chromium of the system's packages, driven by selenium.
	DUGONG_BROWSER=1 $(BIN)/python -m pytest tests/browser $(ARGS)

.PHONY: test-lowest coverage
test-lowest: venv  ## Test the core with the lowest versions that pyproject.toml declares, in .venv-lowest. Python 3.11.
	@$(PYTHON) -m venv --clear .venv-lowest
	@$(PYTHON) scripts/lowest.py > .venv-lowest/constraints.txt
	@.venv-lowest/bin/python -m pip install -qq --disable-pip-version-check 'pip>=25.1'
	.venv-lowest/bin/python -m pip install -qq --disable-pip-version-check -c .venv-lowest/constraints.txt -e . --group test
	.venv-lowest/bin/python -m pytest $(addprefix tests/,$(LOWEST)) -n $(JOBS) --dist loadscope $(ARGS)

coverage: $(ALL)  ## Run the tests and print the branch coverage of src, compiled kernels aside; below 90 % is an error.
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope --ignore=tests/browser --ignore=tests/parsers --ignore=tests/store --cov --cov-report=term -q $(ARGS)

.PHONY: screenshot
screenshot: $(ALL) browser  ## Make the picture of the report in the README anew.
	$(BIN)/python scripts/screenshot.py

.PHONY: studio-page studio-pictures
studio-pictures: $(ALL) browser  ## Make the pictures of the studio in the documentation anew.
	$(BIN)/python scripts/studio_pictures.py

studio-page:  ## Bundle the page of the studio (web/studio) into the package; needs npm. Commit what it writes.
	cd web/studio && npm ci --silent && npm run --silent build

lint: $(ALL)  ## Check style, format, types, the order of the stages, and the files that the repository's host reads.
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .cache/import_linter --no-logo
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor -q --offline --no-progress .github

check: lint  ## The same as lint.

format: $(ALL)  ## Format the code and sort the imports.
	$(BIN)/ruff check --fix-only $(CODE)
	$(BIN)/ruff format $(CODE)

.PHONY: hooks package smoke
hooks: $(ALL)  ## Let git run the quick checks before every commit, and the others before every push.
	$(BIN)/pre-commit install --hook-type pre-commit --hook-type pre-push

package: $(ALL)  ## Build wheel and source distribution into dist/, and check what a package index would show.
	rm -rf dist
	$(BIN)/python -m build --no-isolation -q
	$(BIN)/twine check --strict dist/*

smoke: package  ## Install the wheel into a fresh environment, and do the whole job with it there.
	$(PYTHON) -m venv --clear .cache/smoke
	.cache/smoke/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt dist/*.whl
	cd .cache/smoke && bin/python -I ../../scripts/smoke.py
	rm -rf .cache/smoke

docs: $(ALL)  ## Build the documentation into site/; a broken link or reference is an error.
	$(BIN)/mkdocs build --strict --quiet

.PHONY: fuzz
fuzz: $(ALL)  ## 20,000 spoiled files, calls and commands: every one is read, or refused in words. `make fuzz ARGS="--cases 2000"` is shorter.
	PYTHONPATH=tests NUMBA_NUM_THREADS=1 $(BIN)/python -m fuzz $(ARGS)

.PHONY: chaos
chaos: $(ALL)  ## kill -9 a hundred times, full disks, vanished folders, two runs at once: every byte as if nothing had been. `ARGS="--kills 3"` is shorter.
	PYTHONPATH=tests NUMBA_NUM_THREADS=1 $(BIN)/python -m chaos $(ARGS)

.PHONY: mutants
mutants: $(ALL)  ## Change one thing of the core at a time (300 times): does a test notice? `ARGS="--mutants 50"` is shorter, `ARGS=--anew` after larger changes.
	$(BIN)/python scripts/mutants.py $(ARGS)

.PHONY: golden
golden: $(ALL)  ## Pin the tables, errors and labels of today anew: `make golden ARGS=learned` writes one group of given, classes, learned.
	$(BIN)/python tests/golden/values.py $(ARGS)

.PHONY: house
house: $(ALL)  ## Print figures of the code: lines, bodies, names, comments, functions that a fit goes through. `ARGS=--show` lists places.
	$(BIN)/python scripts/house.py $(ARGS)

bench: $(ALL)  ## Measure speed, memory and quality against the peers, in .venv-peers. `make bench ARGS=--quick` is shorter.
	$(BIN)/python -m benchmarks.run $(ARGS)

.PHONY: bench-micro
bench-micro: $(ALL)  ## Measure single kernels as multiples of sum() over the same votes, with pytest-benchmark.
	NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks/micro -p pytest_benchmark.plugin --benchmark-timer=time.process_time $(ARGS)

.PHONY: bench-windows
bench-windows: $(ALL)  ## Errors of overlapping windows against exact answers, and what the audit says; writes docs/explanation/resolutions.md.
	$(BIN)/python -m benchmarks.propagation $(ARGS)

.PHONY: bench-real
bench-real: $(ALL)  ## Score the defaults on the real votes of ../shared/data and on worlds with known truth; writes docs/explanation/real.md.
	$(BIN)/python -m benchmarks.real

.PHONY: bench-public
bench-public: $(ALL)  ## Score the defaults on votes of weak sources over real data inside public packages. `ARGS="development 1 --only rain"` is shorter.
	$(BIN)/python -m benchmarks.public $(or $(ARGS),development)

.PHONY: bench-review
bench-review: $(ALL)  ## What 50 chosen labels are worth beside 150 random ones, on worlds and real votes. `ARGS=5` is shorter.
	$(BIN)/python -m benchmarks.review $(ARGS)

.PHONY: bench-drift
bench-drift: $(ALL)  ## How often a source that lost .15 of its accuracy is found in 200 sequences, and false alarms. `ARGS=20` is shorter.
	$(BIN)/python -m benchmarks.drift $(ARGS)

.PHONY: bench-shards
bench-shards: $(ALL)  ## Fit and label 10 and 500 million votes, shard by shard: time for the size, peak memory. `ARGS="5 50"` is shorter.
	$(BIN)/python benchmarks/shards.py $(ARGS)


.PHONY: pictures
pictures: $(ALL)  ## Make the table of formats and the pictures of round trips in the documentation anew.
	$(BIN)/python scripts/format_pages.py

.PHONY: bench-studio chaos-studio
bench-studio: $(ALL)  ## Measure how quick the studio answers, and is on screen (`make browser`): typing to votes, first page, 12 hours at 64 Hz. `ARGS=--quick` is shorter.
	$(BIN)/python benchmarks/studio.py $(ARGS)
	$(BIN)/python benchmarks/studio_browser.py $(ARGS)

chaos-studio: $(ALL)  ## kill -9 the studio and its processes twenty times during edits and corrections.
	DUGONG_STORMS=20 $(BIN)/python -m pytest -q tests/studio/test_chaos.py

.PHONY: bench-formats
bench-formats: $(ALL)  ## Write and read 100,000 intervals in every format; fails if a text format takes over 2 s of the processor.
	$(BIN)/python benchmarks/formats.py $(ARGS)

clean:  ## Remove the virtual environment and everything that was built.
	rm -rf $(VENV) .venv-peers .venv-parsers .venv-lowest .venv-store .cache .hypothesis build dist site dugong-demo
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# Chromium comes from the system's packages: installed where we may, asked for where we may not.
browser: | $(ALL)
	@{ command -v chromedriver && { command -v chromium || command -v chromium-browser || command -v google-chrome; }; } \
	    >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "Installing Chromium ..." >&2 && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	  { echo "error: chromium and chromedriver are needed; only root on Debian or Ubuntu can install them here." >&2; \
	    echo "  Install them with the system's package manager, then run make test-browser again." >&2; exit 1; }
	@$(BIN)/python -c 'import selenium' 2>/dev/null || $(PIP) selenium

# An interrupted or broken .venv is made anew.
venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed, found $$($(PYTHON) --version 2>&1)." >&2; \
	    echo "  Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)

$(CORE): pyproject.toml constraints.txt | venv
	@echo "Installing the core into $(VENV) ..." >&2
	@$(PIP) -e .
	@touch $@

$(ALL): pyproject.toml constraints.txt | venv
	@echo "Installing the core, torch and the development tools into $(VENV) (a minute or two) ..." >&2
	@$(PIP) 'pip>=25.1'
	@$(PIP) -e '.[torch]' --group dev
	@touch $(CORE) $@
