# The usual tasks, each as one target; `make help` lists them. Every target first installs the
# packages that it lacks (on Debian 12), and asks nothing. The targets are thin wrappers: the build
# itself is CMake's (CMakePresets.json) and works without make.
#
#   make run ARGS="--listen 127.0.0.1:11400"    # more flags for `carillon serve`
#   make test TESTS=wheel                       # only the tests whose name matches
#   make simulate STEPS=10000000 SEED=7         # fewer steps, from another seed on
#   make build PACKAGES=mine                    # neither check nor install packages
#   make install PREFIX=/opt/carillon
#   make install-library WITH="cron asio"        # the library, and no server
#   make test-image ENGINE=podman               # the image, without Docker

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: help deps build run test test-all simulate asan tsan fuzz bench format lint docs install \
  install-library deb test-deb test-image clean

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
TESTS ?=
ARGS ?=
WITH ?=
STEPS ?= 1000000000
SEED ?= random
FUZZ_SECONDS ?= 600
SIMULATED ?= 200000
PACKAGES ?= debian
ENGINE ?= docker

say = @printf 'carillon: %s\n'
ifeq ($(PACKAGES),mine)
packages = @:
else
packages = @scripts/install-packages
endif

# CMake's report goes to a file, its warnings and errors to the terminal.
configure = @mkdir -p build && cmake --preset
quietly = >build/configure.log || { cat build/configure.log; exit 1; }

# The sanitizers of g++ 12 need fixed address ranges. Kernels that randomise more than 28 bits may
# already use them, so the tests run without address randomisation.
fixed_addresses := $(shell setarch -R true 2>/dev/null && echo setarch -R)

help: ## this list
	@sed -n 's/^\([a-z -]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

deps: ## install every package that any target needs
	$(packages) build test lint bench

build: ## build ./build/carillon
	$(packages) build
	@# A configured tree keeps its options: ninja configures it again when a CMake file changes.
	@[[ -f build/build.ninja ]] || \
	  { mkdir -p build && cmake --preset release -DCARILLON_TESTS=OFF $(quietly); }
	$(say) "building ./build/carillon"
	@cmake --build build --target carillon --parallel $(JOBS)

run: build ## build, and serve on 127.0.0.1:11300 and 11380 (HTTP), data in ./carillon-data
	$(say) "starting ./build/carillon serve --data ./carillon-data $(ARGS)"
	@exec ./build/carillon serve --data ./carillon-data $(ARGS)

test: ## build, and run every test
	$(packages) build test
	$(configure) release -DCARILLON_TESTS=ON -DCARILLON_SIMULATED_STEPS=$(SIMULATED) $(quietly)
	$(say) "building everything"
	@cmake --build build --parallel $(JOBS)
	$(say) "running the tests"
	@# Many tests wait for a moment to come: two for each processor keep it at work.
	@ctest --preset release --parallel $$((2 * $(JOBS))) $(if $(TESTS),-R '$(TESTS)')

test-all: ## the same, and simulate five times as many steps, as .ci/run does
	@$(MAKE) --no-print-directory test SIMULATED=1000000

simulate: ## 10^9 steps of simulated crashes, faults and clients; takes hours, shows progress
	$(packages) build test
	$(configure) simulator -DCARILLON_TESTS=ON $(quietly)
	$(say) "building the simulator, which checks all preconditions, in build/simulator"
	@cmake --build build/simulator --target carillon_simulator --parallel $(JOBS)
	$(say) "simulating $(STEPS) steps; a failure says how to see it again"
	@exec ./build/simulator/carillon_simulator \
	  --seed $(SEED) --steps $(STEPS) --jobs $(JOBS) --progress

asan tsan: ## the tests of the layers under the address (asan) or thread (tsan) sanitizer
	$(packages) build test
	$(configure) $@ $(quietly)
	$(say) "building the tests of the layers with the $@ preset, in build/$@"
	@cmake --build --preset $@ --parallel $(JOBS)
	$(say) "running them"
	@$(fixed_addresses) ctest --preset $@ --parallel $(JOBS) $(if $(TESTS),-R '$(TESTS)')

fuzz: ## feed what reads clients' bytes with made-up ones (libFuzzer), FUZZ_SECONDS for each
	$(packages) build test fuzz
	$(configure) fuzz $(quietly)
	$(say) "building the fuzzers, in build/fuzz; a wrong input will be written there, too"
	@cmake --build --preset fuzz --parallel $(JOBS)
	@mkdir -p build/fuzz/found/{session,http,json}
	@cd build/fuzz && dir=../../tests/server/fuzz && export UBSAN_OPTIONS=halt_on_error=1 && \
	  run() { \
	    ./$$1_fuzzer -max_total_time=$(FUZZ_SECONDS) -dict=$$dir/$$2.dict -print_final_stats=1 \
	      found/$$1 $$dir/corpus/$$1; \
	  } && run session beanstalk && run http http && run json http

bench: ## build and run the benchmarks of the library, and the server beside beanstalkd
	$(packages) build bench
	$(configure) release -DCARILLON_TESTS=OFF -DCARILLON_BENCH=ON $(quietly)
	$(say) "building what is measured"
	@cmake --build build --parallel $(JOBS)
	$(say) "running the benchmarks"
	@./build/carillon_bench_wheel --out build/bench-wheel.json
	@./build/carillon_bench_timer --quick
	@./build/carillon_bench_idle
	@bench/beanstalk/compare

format: ## bring every C++ and Python file into the project's form
	$(packages) lint
	@scripts/format

lint: ## check the form of every file, and the meaning (clang-tidy) of C++
	$(packages) build test lint bench
	@JOBS=$(JOBS) scripts/lint

docs: ## write the reference of the library into ./build/docs
	$(packages) docs
	@rm -rf build/docs && mkdir -p build/docs
	$(say) "writing build/docs/index.html"
	@CARILLON_DOCS=build/docs doxygen docs/reference/Doxyfile

install: build ## install the command, the libraries, the headers and the CMake package into PREFIX
	$(say) "building all that is installed with it"
	@cmake --build build --parallel $(JOBS)
	$(say) "installing into $(PREFIX)"
	@cmake --install build --prefix '$(PREFIX)'

# WITH="cron asio", or one of them: the parts that need more than threads. None needs the server.
with = $(if $(filter $1,$(WITH)),ON,OFF)
install-library: ## install the wheels, the timers, the idle tracker; WITH="cron asio": these, too
	$(if $(filter-out cron asio,$(WITH)),$(error WITH=$(WITH): it may have cron and asio))
	$(packages) library $(WITH)
	$(say) "building the timer service, and neither the queue nor the server"
	@mkdir -p build
	@cmake --preset library -DCARILLON_CRON=$(call with,cron) -DCARILLON_ASIO=$(call with,asio) \
	  $(quietly)
	@cmake --build build/library --parallel $(JOBS)
	$(say) "installing into $(PREFIX)"
	@cmake --install build/library --prefix '$(PREFIX)'

deb: build ## make a Debian package of the server, in ./build/deb
	$(packages) build deb
	$(say) "packing build/deb/carillon_*.deb"
	@packaging/build-deb >build/deb.log 2>&1 || { cat build/deb.log; exit 1; }
	$(say) "made $$(echo build/deb/*.deb)"

test-deb: deb ## install, use and remove the package in a fresh Debian; as root, with a network
	$(packages) test-deb
	$(say) "installing the package in a chroot of Debian 12; this takes two minutes"
	@python3 -B tests/packages/deb_test.py build/deb/carillon_*.deb

test-image: ## build the image and run it, with Docker or ENGINE=podman; with a network
	$(say) "building the image carillon:try with $(ENGINE); this takes 10 minutes on 2 cores"
	@# Podman's own format has no health check.
	@BUILDAH_FORMAT=docker $(ENGINE) build -t carillon:try -f packaging/docker/Dockerfile .
	@python3 -B tests/packages/image_test.py $(ENGINE) carillon:try

clean: ## remove ./build (the data of `make run` stays)
	@rm -rf build
