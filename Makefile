# make demo | check | test | lint | docs | bench | bench-scale | quality | paper | wheel | soak | clean
#
# Every target makes its own virtual environment inside the checkout and installs what it needs from PyPI. Needed beforehand: Python 3.11 or
# later with the venv module, and a C++20 compiler. CMake and Ninja come from PyPI.
#
# While one works: `make check`, which runs the quick tests of what has changed. Before one pushes: `make test`, all tests by samples where they are
# long. Before a release: `make soak`, which proves these in full.

PYTHON ?= python3
CXX ?= c++
# Where python3 is not named so, or a certain one is wanted: make test PYTHON=python3.13

SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find core src -type f -not -name '*.pyc')
TESTS ?= tests
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: browser help demo check test lint docs bench bench-scale quality paper wheel soak clean tools

help:
	@echo "make demo     train on film reviews, measure the model, write a page about it"
	@echo "make check    quick tests of what has changed since the last commit; BASE=main for since that one"
	@echo "make test     build the wheel, install it, test it"
	@echo "make lint     ruff, mypy, import-linter"
	@echo "make docs     the site of docs/ in build/docs"
	@echo "make bench    speed, beside tomotopy and scikit-learn"
	@echo "make bench-scale  documents beyond memory, 701,000 words, text to counts of the files in TEXTS=..."
	@echo "make quality  how good, beside tuned baselines, on the files in DATA=..."
	@echo "make paper    the paper's experiments, on the files in DATA=...; OPTIONS=--quick for a first look"
	@echo "make wheel    source distribution and portable wheel in dist/"
	@echo "make soak     long proofs: sanitizers, all combinations of parameters, killed fits, altered files"
	@echo "make clean    remove all that the others made"

tools:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not there: install Python 3.11 or later, or set PYTHON" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$$($(PYTHON) --version) is too old: install Python 3.11 or later, or set PYTHON" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module: install it (Debian and Ubuntu: python3-venv)" >&2; exit 1; }
	@command -v $(firstword $(CXX)) >/dev/null || { echo "no C++ compiler named $(CXX): install one, or set CXX" >&2; exit 1; }

# An environment is made anew when pyproject.toml changes (its packages are there, in [dependency-groups]); the wheel is installed into it when
# the sources change.
.venv-%/made: pyproject.toml | tools
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(@D)/bin/pip install --quiet --group $*
	touch $@

build/wheels/made: $(SOURCES) | .venv-wheel/made
	rm -rf $(@D)
	.venv-wheel/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(@D) .
	touch $@

.venv-%/installed: .venv-%/made build/wheels/made
	$(@D)/bin/pip install --quiet --force-reinstall --no-deps build/wheels/*.whl
	$(@D)/bin/pip install --quiet build/wheels/*.whl
	touch $(@D)/compiled $@

# The wheel that is installed has the core as it is; its Python files may be older.
.venv-%/compiled: .venv-%/made CMakeLists.txt $(shell find core -type f)
	$(MAKE) $(@D)/installed
	touch $@

demo: .venv-demo/installed
	.venv-demo/bin/mirrorlda demo -o build/demo

# What has changed: files that are not committed or, where all are, the last commit; with BASE, what has changed since that commit. The tests of a
# package are in the folder of its name, and tests/check.py says what belongs to other files. Tests of more than two seconds are left to `make test`.
# They run on the Python files as they are, copied over those of the wheel; so `make test` installs the wheel anew.
check: .venv-test/compiled
	rm -f .venv-test/installed
	.venv-test/bin/python -P tests/check.py $(BASE)

# A tenth of `make soak` is part of it where the compiler has the sanitizers.
# What is tested is the built wheel. Covers: the core against the oracle, central differences and JAX; properties; estimators and scikit-learn's
# own checks; every example in a docstring, in README.md and in docs/. On the best instruction set of the machine: `make soak`
# has the others.
test: .venv-test/installed browser
	.venv-test/bin/python -P -c "import mirrorlda; print('testing', mirrorlda.__file__)"
	if [ -e "$$($(CXX) -print-file-name=libasan.so)" ]; then $(MAKE) .venv-soak/installed && $(SANITIZERS) .venv-soak/bin/pytest --quiet --capture=sys $(SANITIZED_SAMPLE); fi
	.venv-test/bin/pytest --numprocesses 2 --dist loadgroup --doctest-modules --pyargs $(TESTS) mirrorlda

# The page is tested in a browser. On Debian and Ubuntu it is installed where there is none; elsewhere those tests are skipped, and say so.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
	  command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; } || \
	    { echo "no Chromium: tests of the page will be skipped" >&2; exit 0; }; \
	  sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  echo "installing chromium"; \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

lint: .venv-lint/made
	.venv-lint/bin/ruff check src tests docs/conf.py docs/extensions benchmarks experiments
	.venv-lint/bin/ruff format --check src tests docs/conf.py docs/extensions benchmarks experiments
	.venv-lint/bin/mypy
	PYTHONPATH=src .venv-lint/bin/lint-imports --no-cache

# Warnings are errors, and so is a reference that leads nowhere. Nothing is downloaded while it builds.
docs: .venv-docs/installed
	rm -rf build/docs
	.venv-docs/bin/python -P -m sphinx --fail-on-warning --keep-going --nitpicky --fresh-env --quiet --doctree-dir build/doctrees docs build/docs
	@echo "build/docs/index.html"

bench: .venv-bench/installed
	.venv-bench/bin/python benchmarks/bench.py

# An hour, 3 GB of disk and 5 GB of memory; what was generated stays in build/scale. TEXTS: files of JSON lines with the field "text".
bench-scale: .venv-bench/installed
	.venv-bench/bin/python benchmarks/scale.py $(if $(TEXTS),--texts $(TEXTS))

# Hours with all systems; what has finished is kept in quality.csv and skipped next time. OPTIONS="--systems mirrorlda" and others:
# experiments/README.md.
quality: .venv-experiments/installed
	@[ -n "$(DATA)" ] || { echo "where are the files? make quality DATA=directory" >&2; exit 1; }
	.venv-experiments/bin/python experiments/quality.py "$(DATA)" $(OPTIONS)

# Days, or with OPTIONS=--quick ten minutes on two cores; what has finished stays in paper-results and is skipped next time.
paper: .venv-experiments/installed
	@[ -n "$(DATA)" ] || { echo "where are the files? make paper DATA=directory" >&2; exit 1; }
	.venv-experiments/bin/python experiments/paper.py "$(DATA)" $(OPTIONS)

# The wheel is built from the source distribution, so that both are known to build; auditwheel (Linux) gives it the manylinux tag that it has
# earned. The result is installed into a fresh environment and used once.
wheel: .venv-wheel/made
	rm -rf dist build/dist .venv-smoke
	.venv-wheel/bin/python -m build --quiet --outdir build/dist .
	mkdir -p dist
	cp build/dist/*.tar.gz dist/
	if [ "$$(uname)" = Linux ]; then PATH="$(CURDIR)/.venv-wheel/bin:$$PATH" .venv-wheel/bin/auditwheel repair --strip --wheel-dir dist build/dist/*.whl; \
	else cp build/dist/*.whl dist/; fi
	$(PYTHON) -m venv .venv-smoke
	.venv-smoke/bin/pip install --quiet dist/*.whl
	cd dist && ../.venv-smoke/bin/python -c "import mirrorlda.topics, mirrorlda.datasets; \
	  data = mirrorlda.datasets.make_topics(200, 50, 3, n_classes=2, random_state=0); \
	  print('accuracy', mirrorlda.TopicClassifier(3, random_state=0).fit(data.X, data.y).score(data.X, data.y))"
	rm -rf .venv-smoke
	ls -l dist

# detect_leaks=0: the interpreter keeps memory to its end, which the leak checker would report in every run. JAX is not part of this environment,
# so the tests that import it stay with `make test`. --capture=sys lets the sanitizers' own words through.
SANITIZED_TESTS := $(SANITIZED_SAMPLE) $(addprefix tests/,data/test_text.py method/test_inference.py method/test_gradients.py method/test_themes.py method/test_properties.py training/test_mirror_descent.py cluster/test_rounds.py)
SANITIZED_SAMPLE := $(addprefix tests/,method/test_core.py data/test_documents.py data/test_corpus.py)
SANITIZERS := LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1

.venv-soak/installed: .venv-soak/made $(SOURCES)
	.venv-soak/bin/pip install --quiet --no-build-isolation -C cmake.define.MIRRORLDA_SANITIZE=ON -C cmake.build-type=RelWithDebInfo -C build-dir=build/sanitized .
	touch $@

# MIRRORLDA_SOAK=10: all combinations of parameters where `make test` takes some of them, and ten times as many kills and altered files.
soak: .venv-soak/installed .venv-test/installed
	set -e; for isa in $$($(SANITIZERS) .venv-soak/bin/python -P -c "import mirrorlda._core as c; print(*c.instruction_sets())"); do \
	  echo "instruction set $$isa"; \
	  MIRRORLDA_SOAK=10 MIRRORLDA_ISA=$$isa $(SANITIZERS) .venv-soak/bin/pytest --quiet --capture=sys $(SANITIZED_TESTS); \
	done
	MIRRORLDA_SOAK=10 .venv-test/bin/pytest --quiet --numprocesses 2 --dist loadgroup tests

# quality.csv and paper-results stay: their runs took hours.
clean:
	rm -rf build dist .venv-* .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
