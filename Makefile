# The front door. Each target first makes .venv ready, which costs nothing once it is; but for clean, which needs
# none.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
SHELL := bash
SECONDS_EACH ?= 30
LOCK_FLAGS ?=
NODES ?= 1
MINUTES ?= 8

.PHONY: help demo demo-cluster demo-claims test test-all check rig rig-up rig-down rig-matrix conformance real site format tables bundle release manifests lock clean ready always

help: ## show this list
	@sed -nE 's/^([a-zA-Z%-]+):.*## (.*)/  make \1\t\2/p' Makefile | sed 's/%/NAME/' | expand -t 22

demo: ready ## show three containers of Docker share a card, on this machine alone
	@tools/demo

demo-cluster: ready ## show it in real Kubernetes, which is built the first time
	@tools/demo cluster

demo-claims: ready ## show shares by DRA claims there, with kube-scheduler and kubelet as they are
	@tools/demo claims

test: ready ## run what every push needs: checks, each promise once, short fuzzing; a quarter of an hour
	@tools/test

test-all: ready ## run everything there is; PART=checks|unit|isolation|simgpu|real|fuzz|bench|demo for a part
	@tools/test --all $(addprefix --part ,$(PART))

check: ready ## the inner loop: format, lint, types, import contracts, quick tests
	@tools/check

rig: ready ## build the real Kubernetes, containerd and more that tests run, once
	@tools/rig-build

rig-up: ready ## start a cluster for yourself, NODES=1: eval "$(make rig-up)"
	@tools/rig up --nodes $(NODES)

rig-down: ready ## stop what rig-up started
	@tools/rig down

rig-matrix: ready ## try every Kubernetes with every containerd that must work
	@tools/named soak matrix

conformance: ready ## ask this machine's card, or SIMULATED=h100, as a driver; AGAINST=FILE compares
	@tools/real --row conformance --out .cache/real/conformance.json $(addprefix --simulated ,$(SIMULATED)) >&2 || (($$? == 3))
	@tools/real facts .cache/real/conformance.json $(addprefix --against ,$(AGAINST))

real: ready ## ask this machine's card what docs/real-card.md says, what decides most first, in MINUTES=8
	@tools/real --minutes $(MINUTES)

bench-%: ready always ## measure NAME: a table, then one JSON object
	@tools/named bench $*

fuzz-%: ready always ## fuzz NAME, or all, for SECONDS_EACH=30
	@tools/named fuzz $* --seconds $(SECONDS_EACH)

soak-%: ready always ## run NAME for long
	@tools/named soak $*

site: ready ## build the documents as a site: search, navigation, every link checked
	@tools/site

format: ready ## write every file as the formatter has it
	@.venv/bin/ruff format --quiet . && .venv/bin/ruff check --quiet --fix .
	@git ls-files -z -- '*.c' '*.h' | xargs -0 -r .venv/bin/clang-format -i

tables: ready ## write the tables of settings and metrics in docs, and the list of tests, from the code
	@.venv/bin/python tools/tables.py && tools/test --list >tests/suite/list.txt

bundle: ready ## build what is installed on nodes and in clusters: images, and one archive of all
	@tools/bundle all

release: ready ## build all that people install into dist/VERSION; AT=its address, REGISTRY=that of its images
	@tools/release $(addprefix --at ,$(AT)) $(addprefix --registry ,$(REGISTRY))

manifests: ready ## write the YAML of manifests/ from the chart, and the chart's own tables
	@.venv/bin/python tools/chart_values.py && .venv/bin/python tools/manifests.py

lock: ready ## choose the versions of the development environment and of the bundle anew
	@tools/lock $(LOCK_FLAGS)

clean: ## remove .venv and every cache
	@rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

ready:
	@tools/bootstrap

# A pattern rule cannot be phony; its wanting this makes it run always.
always:
