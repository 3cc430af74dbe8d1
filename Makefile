# Everything runs in .venv, which the first target makes by itself.
PYTHON ?= python3
BIN := .venv/bin

.venv/made: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q "scikit-build-core>=0.10" "cffi>=2.1" "cmake>=3.25" ninja
	touch $@

dev: .venv/made
	$(BIN)/pip install -q --no-build-isolation --config-settings=cmake.define.CMAKE_INSTALL_ALWAYS=1 -e ".[cli,test,dev]"

.PHONY: dev
