# Every verb of the repository. Each does its own set-up.
.DEFAULT_GOAL := help
SHELL := /bin/bash
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
OUT ?= out

.PHONY: help demo test lint doc bench instructions fuzz spec semver linux interop old-programs kernel-calls capi capi-uninstall capi-check capi-windows program deb wheel wheels sdist clean

help: ## list every verb
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## a file over real sockets, two published studies in simulation, and a report to look at
	@scripts/demo.sh "$(OUT)"

test: ## all tests (unit, property, sockets over loopback, command line, captures, Python)
	@scripts/setup.sh test
	@CARGO="$(CARGO)" scripts/test.sh
	@UDCCP= scripts/python.sh test

lint: ## formatting, clippy, docs, licences and the house rules, warnings denied
	@scripts/setup.sh lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p udccp --all-targets --all-features --locked -- -D warnings
	$(CARGO) clippy -p udccp --no-default-features --locked -- -D warnings
	@CARGO="$(CARGO)" scripts/targets.sh
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	$(CARGO) deny --log-level error check licenses bans sources
	$(CARGO) xtask all
	$(CARGO) xtask api
	@scripts/python.sh lint
	@scripts/packages.sh

doc: ## the API documentation
	@scripts/setup.sh rust
	$(CARGO) doc --workspace --no-deps

bench: ## speed and memory, each as a ratio to a named peer; rewrites docs/reference/performance.md
	@scripts/setup.sh bench
	@CARGO="$(CARGO)" scripts/bench.sh
	$(CARGO) bench --workspace
	@scripts/python.sh bench

instructions: ## instructions a simulated packet takes, by layer; fails where they grew by more than 3 %
	@CARGO="$(CARGO)" scripts/instructions.sh check

fuzz: ## each fuzz target for a minute (needs the nightly toolchain)
	@scripts/setup.sh rust
	@scripts/fuzz.sh

spec: ## requirement trace: rewrites spec/coverage.txt
	@scripts/setup.sh rust
	$(CARGO) xtask spec

semver: ## whether the sockets still serve programs written for BASE (a tag or commit; needs a release)
	@CARGO="$(CARGO)" scripts/semver.sh "$(BASE)"

linux: ## set up `udccp linux`: a Linux kernel with DCCP that runs scenarios in virtual time
	@scripts/setup.sh linux
	$(CARGO) build --release --locked -p udccp-cli
	"$(TARGET)/release/udccp" linux --setup

interop: linux ## our DCCP against that of the Linux kernel, in every combination: docs/reference/interop.md
	@scripts/setup.sh interop
	"$(TARGET)/release/udccp" interop -o docs/reference/interop.md

old-programs: linux ## programs of Debian that open SOCK_DCCP, many times: docs/reference/old-programs.md
	@scripts/old-programs.sh

kernel-calls: linux ## socket calls under `udccp run` against those of Linux: docs/reference/kernel-calls.md
	UDCCP="$(TARGET)/release/udccp" python3 scripts/kernel_calls.py -o docs/reference/kernel-calls.md

capi: ## the C library libudccp, with header and pkg-config file, to $(DESTDIR)$(PREFIX) (/usr/local)
	@scripts/setup.sh capi
	@CARGO="$(CARGO)" scripts/capi.sh install

capi-uninstall: ## removes the C library from $(DESTDIR)$(PREFIX)
	@scripts/capi.sh uninstall

capi-check: ## the C library as installed, and its tests under AddressSanitizer and valgrind
	@scripts/setup.sh capi-check
	@CARGO="$(CARGO)" scripts/capi.sh check
	@CARGO="$(CARGO)" scripts/capi.sh sanitize

capi-windows: ## the C library for Windows: target/capi-windows (udccp.dll, its import library, the header)
	@scripts/setup.sh capi-windows
	@CARGO="$(CARGO)" scripts/capi.sh windows

program: ## the program as packages have it, optimised by a profile of its use: simulates in 6 to 23 % less time
	@CARGO="$(CARGO)" scripts/pgo.sh program

deb: ## a Debian package of the program with manual pages and completions
	@scripts/deb.sh

wheel: ## the Python package udccp as a wheel for this machine (target/wheels)
	@scripts/python.sh wheel

wheels: ## the same for Linux on x86-64 and aarch64, glibc 2.17 and newer
	@scripts/python.sh wheels

sdist: ## the sources of the Python package (target/wheels), checked to compile without this clone
	@scripts/python.sh sdist

clean: ## remove what was built and measured
	$(CARGO) clean
	rm -rf "$(OUT)"
