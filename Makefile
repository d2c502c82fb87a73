# The contributor's verbs; `make` alone lists them. Nothing here needs root.
#
# PYTHON=...       interpreter for the virtual environment (default: the first of python3, python3.13, 3.12, 3.11 that fits)
# PYTHONS=...      further interpreters for `make test-pythons` (default: python3.12 python3.13)
# TORCH_INDEX=...  package index to take torch from (default: pip's own)
# ARGS=...         further arguments for pytest (make test) or the benchmarks (make bench)
# DIST=...         where `make dist` puts its files (default: dist)

VENV := .venv
PYTHON ?=
PYTHONS ?= python3.12 python3.13
TORCH_INDEX ?=
ARGS ?=
DIST ?= dist

BIN := $(VENV)/bin
PACKAGES := . plugins/openreg_sim plugins/cuda_cupti
PROJECT_FILES := $(addsuffix /pyproject.toml,$(PACKAGES))
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup native demo test check fmt lint types layers audit test-pythons bench dist asan gpu-smoke snapshot clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: native ## set up, then profile a program on the simulated device
	@$(BIN)/devprof demo

test: native ## set up, then run the tests
	@DEVPROF_REQUIRE_OPENREG=1 $(BIN)/python -m pytest $(ARGS)

check: lint types layers audit ## everything that CI checks before the tests: linter, types, layers, dependencies

setup: $(VENV)/.ready ## make .venv with pinned tools, torch and the three packages (editable)

native: $(VENV)/.ready ## build the native libraries against the installed torch (cached)
	@command -v "$${CXX:-g++}" >/dev/null || command -v clang++ >/dev/null || { echo "make: no C++ compiler was found:\
	 install g++ (Debian: apt install g++), or say CXX=/path/to/compiler." >&2; exit 1; }
	@$(BIN)/devprof build

fmt: $(VENV)/.ready ## format the code, and fix what the linter can fix by itself
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(VENV)/.ready ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.ready ## mypy --strict on devprof and the plugins
	@$(BIN)/mypy

layers: $(VENV)/.ready ## import-linter: which room may import which
	@PYTHONPATH=plugins/openreg_sim:plugins/cuda_cupti $(BIN)/lint-imports --no-logo

audit: $(VENV)/.ready ## what is installed agrees with itself, with the pins and with what was reviewed; needs no network
	@$(BIN)/python -m pip --disable-pip-version-check check >/dev/null || { $(BIN)/python -m pip check; exit 1; }
	@$(BIN)/python -m pytest -q tests/house/test_dependencies.py >/dev/null || \
	    $(BIN)/python -m pytest -q tests/house/test_dependencies.py

# the simulated runtime, and everything that does not need torch, on other Pythons
test-pythons: ## run the tests without torch on each interpreter of PYTHONS
	@ran=; for python in $(PYTHONS); do \
	    $$python -c 'import venv, ensurepip' >/dev/null 2>&1 || { echo "make: $$python is not usable here, skipped."; continue; }; \
	    name=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); venv=.venv-$$name; ran="$$ran $$name"; \
	    echo "--- Python $$name, without torch"; \
	    { [ -x $$venv/bin/python ] || $$python -m venv $$venv; } && \
	    $$venv/bin/python -m pip --disable-pip-version-check install --quiet -r requirements-dev.txt && \
	    $$venv/bin/python -m pip --disable-pip-version-check install --quiet --no-build-isolation --no-deps \
	        $(addprefix -e ,$(PACKAGES)) && \
	    $$venv/bin/python -m pytest -m "not dist" $(ARGS) || exit 1; \
	done; \
	[ -n "$$ran" ] || { echo "make: none of '$(PYTHONS)' is on PATH; name interpreters with PYTHONS=\"/path/a /path/b\"." >&2; exit 1; }

bench: native ## run the benchmarks, each against its peer
	@KINETO_LOG_LEVEL=6 $(BIN)/python -m benchmarks $(ARGS) # 6: without two lines of Kineto per session

dist: $(VENV)/.ready ## build wheels and sdists of the three packages into dist/
	@rm -rf $(DIST)
	@for package in $(PACKAGES); do $(BIN)/python -m build --no-isolation --outdir $(DIST) $$package >/dev/null || exit 1; done
	@ls $(DIST)

# the allocator's own counters stay at zero under the sanitizer, so the test that reads them is left out; Python leaks on purpose
asan: $(VENV)/.ready ## the native libraries under an address sanitizer, in real torch sessions (g++; eight minutes)
	@export CXX="g++ -fsanitize=address -fno-omit-frame-pointer -g1" DEVPROF_CACHE="$(CURDIR)/.asan" && $(BIN)/devprof build && \
	    LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:handle_segv=0:alloc_dealloc_mismatch=0 \
	    $(BIN)/python -m pytest tests/torch tests/openreg $(ARGS) \
	    --deselect tests/torch/test_sink_life.py::test_traces_and_exports_of_one_profile_keep_no_byte_of_a_record

gpu-smoke: ## on a machine with an NVIDIA GPU: the CUDA plugin on it, with the Python that is current; under three minutes
	@$(or $(PYTHON),python3) tests/gpu/cupti_smoke.py

snapshot: native ## renew the files that are made from the code: public API, the README's output
	@RENEW_SNAPSHOTS=1 $(BIN)/python -m pytest -q tests/house

clean: ## remove everything that make has made here
	@rm -rf $(VENV) .venv-* .asan dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@rm -rf *.egg-info plugins/*/*.egg-info plugins/*/build
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is the last thing written, so that a setup that was interrupted is done again.
$(VENV)/.ready: $(PROJECT_FILES) requirements-dev.txt requirements-torch.txt
	@python=; for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	    $$candidate -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	        && { python=$$candidate; break; }; \
	done; \
	[ -n "$$python" ] || { echo "make: devprof needs Python 3.11, 3.12 or 3.13, and none was found: install one, or say\
	 PYTHON=/path/to/python." >&2; exit 1; }; \
	$$python -c 'import venv, ensurepip' 2>/dev/null || { echo "make: $$python has no venv module: install it (Debian:\
	 apt install python3-venv), or say PYTHON=/path/to/another/python." >&2; exit 1; }; \
	[ -x $(BIN)/python ] || { echo "make: setting up $(VENV) with $$($$python --version)"; $$python -m venv $(VENV); }
	@$(PIP) -r requirements-dev.txt
	@$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) -r requirements-torch.txt
	@$(PIP) --no-build-isolation --no-deps $(addprefix -e ,$(PACKAGES))
	@$(BIN)/python -m pip --disable-pip-version-check check >/dev/null || { $(BIN)/python -m pip check; exit 1; }
	@touch $@
