# The front door. `make` lists what there is. Each target installs what it lacks
# from the distribution's packages (tools/setup.sh) and does nothing twice.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help build demo test check sanitize fuzz bench format lint install clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the release binary at build/muster
	@tools/setup.sh build
	@tools/build.sh release
	@ln -sfn release/src/cli/muster build/muster

demo: build ## run the demo model on several kinds of text
	@tools/demo.sh build/muster

test: ## build and run all tests (release)
	@tools/setup.sh build
	@tools/build.sh release --tests
	@ln -sfn release/src/cli/muster build/muster
	@ctest --preset release -j $(JOBS)

check: ## the tests under sanitizers, every fuzz target, format and lint
	@tools/setup.sh check
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory sanitize
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=20

sanitize: ## the tests under address, undefined-behaviour and thread sanitizers
	@tools/setup.sh check
	@tools/build.sh asan --tests
	@ctest --preset asan -j $(JOBS)
	@tools/build.sh tsan base_test runtime_test
	@ctest --preset tsan -j $(JOBS) -R '^(base|runtime)$$'

fuzz: ## run every fuzz target for FUZZ_SECONDS (one: FUZZ=name)
	@tools/setup.sh check
	@tools/build.sh asan fuzzers
	@tools/fuzz.sh build/asan/fuzz $(FUZZ_SECONDS) $(FUZZ)

bench: ## build and run the benchmarks of kernels (some: BENCH=regex)
	@tools/setup.sh bench
	@tools/bench.sh $(BENCH)

format: ## format the C++ sources
	@tools/setup.sh check
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

lint: ## check the format and run clang-tidy
	@tools/setup.sh check
	@tools/lint.sh

install: build ## install under PREFIX (default /usr/local)
	@cmake --install build/release --prefix "$(DESTDIR)$(PREFIX)"

clean: ## remove everything that was built
	@rm -rf build
