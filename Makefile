# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One busy thread pool is enough: PyTorch and the compiled kernels take turns, BLAS stays out.
export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test plain slow kernels reference lint docs clean

help: ## List the commands
	@grep -E '^[a-z]+:.*##' Makefile | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

demo: $(STAMP) ## Train all models on the embedded graph and write demo-report/
	$(BIN)/geomgcn demo --out demo-report

test: $(STAMP) ## Run the tests, with shapes checked
	$(BIN)/python -m pytest

plain: $(STAMP) ## Run the tests as users run the code, with shapes unchecked
	$(BIN)/python -m pytest --override-ini addopts="-ra --strict-markers -m 'not slow'"

slow: $(STAMP) ## Run the longer checks
	$(BIN)/python -m pytest -m slow

$(VENV)/triton: $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --target $(VENV)/triton triton

kernels: $(VENV)/triton ## Run the kernels for GPUs in Triton's interpreter, on the CPU
	TRITON_INTERPRET=1 PYTHONPATH=$(VENV)/triton $(BIN)/python -m pytest tests/unit/test_triton.py

reference: $(STAMP) ## Run the tests against published files; in GEOMGCN_MIRROR
	$(BIN)/python -m pytest -m reference

lint: $(STAMP) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP) ## Run every code block of README and docs
	$(BIN)/python -m pytest tests/docs

clean: ## Remove the environment and what the commands wrote
	rm -rf $(VENV) demo-report .pytest_cache .mypy_cache .ruff_cache
