# make demo   sets up an environment and runs Harmonium on its built-in collection
# make test   sets up an environment and runs the tests, except the long ones
# make test-long  runs the long ones
# make coverage   all tests, and which lines and branches of the package they run
# make lint   ruff, mypy and, where Node is installed, Prettier
# make docs   the documentation as a site of plain files, in site/
# make gallery   runs the examples and writes their pages and notebooks, ONLY="smooth_tags" for some
# make bench  speed beside other libraries, into docs/benchmarks.md: a quarter of an hour, ONLY="rbm auc" for some of it
# make size   how large and how dense the package is, and how many modules three common walks pass
# make fuzz   every parser on much damaged input; EXAMPLES=5000 for each
# make release   builds the wheel and the sdist, and tests both outside the repository
# make lock   renews constraints.txt, the set of versions that everything above installs

VENV   ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BENCH  ?= $(VENV)-bench
BIN    := $(VENV)/bin
# The tests of a file run on one worker, the longest files first (tests/conftest.py). Bytecode is
# kept, since many tests start Python again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
PRETTIER := prettier@3.6.2
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test test-long coverage lint docs gallery fuzz bench size release lock clean

demo: $(VENV)/.installed
	$(BIN)/harmonium demo

test: $(VENV)/.installed-test
	$(PYTEST) -m "not long"

test-long: $(VENV)/.installed-test
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(PYTEST) -m long

coverage: $(VENV)/.installed-test
	rm -f .coverage .coverage.*
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m coverage run -m pytest -n auto --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if npx --yes $(PRETTIER) --version >/dev/null 2>&1; then \
	  npx --yes $(PRETTIER) --check 'harmonium/web/static/**/*.js' '!**/vendor/**'; \
	else echo "Prettier skipped: it needs npx, and access to a package registry or npm's cache."; fi

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html in a browser."

gallery: $(VENV)/.installed
	$(BIN)/python docs/gallery.py $(ONLY)

size: $(VENV)/.installed-test
	$(BIN)/python -W ignore benchmarks/size.py --list

fuzz: $(VENV)/.installed-test
	FUZZ_EXAMPLES=$(or $(EXAMPLES),5000) $(BIN)/python -m pytest tests/fuzz

release: $(VENV)-release/.installed
	$(VENV)-release/bin/python release/release.py

bench: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/bench.py $(ONLY)

lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager '.[test,docs,release]'
	{ echo '# The versions that the tests passed with; written by "make lock".'; \
	  $(VENV)-lock/bin/python -m pip freeze --exclude harmonium | grep -v '^harmonium'; } > constraints.txt
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) $(VENV)-release demo dist site

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Harmonium needs Python 3.11 or newer; none was found. Install one, or name it: make PYTHON=/path/to/python3 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Harmonium into $(VENV) (about a minute the first time) ..."
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "Installing the test tools into $(VENV) ..."
	$(PIP) --editable '.[test]'
	@touch $@

# musicnn's package asks for versions that no longer exist; TensorFlow does not exist for every Python
$(BENCH)/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Harmonium needs Python 3.11 or newer; none was found."; exit 1; }
	@echo "Installing the rivals into $(BENCH) (PyTorch and TensorFlow: 4 GB, some minutes) ..."
	$(PYTHON) -m venv $(BENCH)
	$(PIP:$(BIN)/%=$(BENCH)/bin/%) --editable '.[benchmarks]'
	-$(PIP:$(BIN)/%=$(BENCH)/bin/%) tensorflow-cpu tf_keras
	-$(PIP:$(BIN)/%=$(BENCH)/bin/%) --no-deps musicnn==0.1.0
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "Installing what makes the site into $(VENV) ..."
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)-release/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt 'build[uv]' twine
	@touch $@
