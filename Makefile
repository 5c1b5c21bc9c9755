# Everything runs in .venv, which is made from requirements.lock and nothing else.
# Another interpreter: make test PYTHON=python3.13

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DOCS_BIN := build/docs-venv/bin
DOCS_READY := build/docs-venv/.ready
UV := $(BIN)/uv
# The tests of platforms wait more than they work: one worker more than there are processors keeps those busy.
WORKERS ?= $(shell $(BIN)/python -c 'import os; print(min((os.cpu_count() or 1) + 1, 4))')
# The first uv is the locked one, too; without a lock, the newest.
UV_PIN = $(or $(shell sed -n 's/^\(uv==[^ ]*\).*/\1/p' requirements.lock 2>/dev/null),uv)

# Like pip, uv trusts what this machine trusts, which behind a proxy of a company is more than its own list.
UV_SYSTEM_CERTS ?= true
export UV_SYSTEM_CERTS

.PHONY: demo test check bench soak pictures docs dist format lock clean

demo: $(READY)
	$(BIN)/python examples/demo.py

# A file of tests stays with one worker; what measures time has the machine to itself afterwards.
# Dozens of processes start from the same sources: compile them once, whatever the environment says.
# MUTATED=yes also takes away what promises hang on, one at a time, to see the tests fail; .ci/run does that.
# MEASURED=yes does the same and measures what the tests reach, which takes half as long again: the workflow of
# each push does that. The pytest plugin imports the package before a coverage plugin would start measuring:
# coverage starts pytest.
SUITE := -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
test: export PYTHONDONTWRITEBYTECODE =
test: $(READY)
	$(if $(MEASURED),$(BIN)/coverage erase)
	$(BIN)/$(if $(MEASURED),coverage run,python) $(SUITE)
	$(BIN)/python -m pytest -m alone
	$(if $(MEASURED),$(BIN)/coverage combine --quiet)
	$(if $(MEASURED),$(BIN)/coverage report)
	$(if $(MEASURED)$(MUTATED),$(BIN)/python -m tests.mutations)

# What looks at a package from outside finds neither an editable install nor what the package needs by itself.
check: INSTALLED = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	PYTHONPATH=.:$(INSTALLED) $(BIN)/pyright --verifytypes gateway_sessions --ignoreexternal
	$(BIN)/lint-imports --no-logo

bench: $(READY)
	$(BIN)/python -m tests.benchmarks

# The long runs, for hours: models, kills, clusters, load. `make soak PARTS="ledger kills"` runs some of them.
soak: $(READY)
	$(BIN)/python -m tests.soak $(PARTS)

# The pictures of the documentation, from what commands print.
pictures: $(READY)
	$(BIN)/python docs/pictures/make.py

# The site of the documentation, in build/site. Its tools have an environment of their own: tests need none of them.
# Material for MkDocs tells of another product at each start, unless it is asked not to.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(DOCS_READY)
	$(DOCS_BIN)/mkdocs build --strict
	$(DOCS_BIN)/python docs/site/check.py build/site

# What is released: one sdist and one wheel.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m hatchling build

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Keeps the pins that still fit; `make lock LOCKFLAGS=--upgrade` takes the newest.
lock: $(UV)
	$(UV) pip compile pyproject.toml --group dev --extra mysql --extra openai --extra postgres --extra test --universal --python-version 3.11 \
		--generate-hashes --custom-compile-command "make lock" --quiet \
		--output-file requirements.lock $(LOCKFLAGS)
	$(UV) pip compile --group docs --constraint requirements.lock --universal --python-version 3.11 \
		--generate-hashes --custom-compile-command "make lock" --quiet \
		--output-file requirements-docs.lock $(LOCKFLAGS)

clean:
	rm -rf .venv .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -rf build dist

$(UV):
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(UV_PIN)"

# `--python`: an activated environment elsewhere must not be taken for ours.
$(READY): requirements.lock pyproject.toml | $(UV)
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

$(DOCS_READY): requirements-docs.lock | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python build/docs-venv
	$(UV) pip sync --quiet --compile-bytecode --python $(DOCS_BIN)/python --require-hashes requirements-docs.lock
	touch $@
