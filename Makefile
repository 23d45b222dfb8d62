# What you can do here. Each recipe is one line; what is longer is Rust in xtask/.
CARGO ?= cargo
XTASK = $(CARGO) run --quiet --locked --package xtask --

.DEFAULT_GOAL = help
.PHONY: help demo test judge-all check lint judge sim mutants soak bench peers rates count fuzz lab deps build deb image doc clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 18

demo: ## The whole story on this machine: mirrored volume, both protocols, a failed drive (ONCE=1 ends by itself; HEADS=2: two heads, one is killed)
	@$(XTASK) demo $(if $(HEADS),--heads $(HEADS)) $(if $(ONCE),--once)

test: ## Everything that must pass: format, lints, unit tests, simulation, real hosts (an hour the first time on two cores, then half an hour)
	@$(XTASK) test

judge-all: ## What takes longer, too: make test, every planted bug, long runs, the bench once
	@$(XTASK) judge-all

check: ## The quick loop: format, lints, unit tests
	@$(XTASK) check

lint: ## Format and lints alone
	@$(XTASK) lint

judge: ## Real kernels, libiscsi, QEMU and tshark against the binary (TEST=name for one)
	@$(XTASK) judge $(TEST)

sim: ## Simulation: SEED=n again (STORY=1: its last events), or SEEDS=n new ones (FROM=n); HEADS=2: of two heads
	@$(XTASK) sim $(if $(HEADS),--heads $(HEADS)) $(if $(SEED),--seed $(SEED)) $(if $(STORY),--story) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FROM),--from $(FROM))

soak: ## Long runs: ill drives for MINUTES=30, ROUNDS=50 of kill -9, SOAK_ROUNDS=50 with a kernel host (10 s each), CUTS=24 of power, TAKEOVERS=20 of two heads (40 s each), HOLDERS=12 of drives that something else has locked, CALM=60 minutes in which none may happen
	@$(XTASK) soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SOAK_ROUNDS),--guest $(SOAK_ROUNDS)) $(if $(CUTS),--cuts $(CUTS)) $(if $(TAKEOVERS),--takeovers $(TAKEOVERS)) $(if $(HOLDERS),--holders $(HOLDERS)) $(if $(CALM),--calm $(CALM))

bench: ## How near to the machine's limit we are, row by row (ROUNDS=5, ONLY=words of a row's name; ten minutes, three with ROUNDS=1)
	@$(XTASK) bench $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only "$(ONLY)")

peers: ## Our figures beside SPDK's and tgt's, where they are present (SPDK=/path/to/spdk, ROUNDS=3; under five minutes)
	@$(if $(SPDK),SPDK=$(SPDK)) $(XTASK) peers $(if $(ROUNDS),--rounds $(ROUNDS))

rates: ## What pools give of their drives' speed, on drives with a known one (SECONDS=5 each)
	@$(XTASK) rates $(if $(SECONDS),--seconds $(SECONDS))

count: ## Instructions of a command and of a simulated world, held against what they were (KEEP=1 accepts them as they are)
	@$(XTASK) count $(if $(KEEP),--keep)

mutants: ## Bugs planted on purpose, each of which the simulator must find (ONLY=Name WITHIN=worlds, or FAST=1); RULES=1: those made by rule, for days, from where it was ended; CHANGED=1: those of changed files, 30 minutes at most (or since CHANGED=commit)
	@$(XTASK) mutants $(if $(RULES),--rules) $(if $(CHANGED),--changed $(CHANGED)) $(if $(ONLY),--only $(ONLY)) $(if $(WITHIN),--within $(WITHIN)) $(if $(FAST),--promptly)

fuzz: ## Every decoder under random bytes, for SECONDS=60 each
	@$(XTASK) fuzz $(or $(SECONDS),60)

lab: ## A guest with a stock kernel, at a prompt
	@$(XTASK) lab

deps: ## Install what demo and tests need (apt)
	@$(XTASK) deps test

build: ## The binary, optimised: target/release/millrace
	$(CARGO) build --release --locked --package millrace

deb: ## A Debian package of it: target/package/*.deb
	@$(XTASK) deb

image: ## An image of it for containers, from files of this machine: target/package/millrace.oci.tar
	@$(XTASK) image

doc: ## The documentation of all crates
	$(CARGO) doc --workspace --no-deps --locked

clean: ## Remove what was built, and the lab's images
	@$(XTASK) clean
