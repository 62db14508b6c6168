# What a person types. `make help` says what each target does.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

TARGET_DIR := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
TIDEGATE := $(TARGET_DIR)/release/tidegate

# The fixed block of seeds of the gate. Discovery draws others: make sim SEEDS=A..B.
GATE_SEEDS := 0..2000
SEEDS ?= 0..2000
# The gate's properties draw the same cases every time; unset it to look for others.
export PROPTEST_RNG_SEED ?= 2026
# The campaign's seeds begin at the commit, so that each night draws others and any repeats.
CAMPAIGN_FROM = $(shell printf '%d' 0x$$(git rev-parse --short=8 HEAD))
CAMPAIGN_SEEDS ?= $(CAMPAIGN_FROM)..$(shell expr $(CAMPAIGN_FROM) + 100000)

# All that the core may stand on: serde and its derive. Nothing else can bring IO or a clock in.
PURE := tidegate-core serde serde_core serde_derive proc-macro2 quote syn unicode-ident

.PHONY: help run build check pure coverage-table test sim campaign bench peers docs

help: ## say what each target does
	@grep -E '^[a-z]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

run: build ## build the gateway and run it
	@exec $(TIDEGATE) gateway run

build: ## build the release program
	cargo build --release --locked -p tidegate

check: pure ## format, lints, what the core may depend on, which test holds which promise
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo run --quiet --locked -p tidegate-coverage -- --check

coverage-table: ## write docs/coverage.md from docs/promises.toml and the tests
	cargo run --quiet --locked -p tidegate-coverage

pure:
	@echo "the core depends on serde alone"
	@extra=$$(cargo tree -p tidegate-core -e normal --prefix none --locked \
	    | cut -d' ' -f1 | sort -u | { grep -vxF "$$(printf '%s\n' $(PURE))" || true; }); \
	if [ -n "$$extra" ]; then echo "tidegate-core must not depend on:" $$extra >&2; exit 1; fi

test: check build ## the gate: checks, a fixed block of seeds, every scenario, every test
	$(TIDEGATE) sim run --seeds $(GATE_SEEDS)
	$(TIDEGATE) sim audit
	$(TIDEGATE) scenario run --crash-at-every-step
	cargo test --workspace --doc --locked --quiet
	@export TIDEGATE_BIN="$$(realpath $(TIDEGATE))"; \
	if cargo nextest --version >/dev/null 2>&1; then \
	    cargo nextest run --workspace --locked; \
	else \
	    cargo test --workspace --lib --bins --tests --locked; \
	fi

sim: build ## simulate seeds: make sim SEEDS=0..100000
	$(TIDEGATE) sim run --seeds $(SEEDS)

campaign: build ## the night's work: many seeds, every order and crash, 50 kills, planted faults
	$(TIDEGATE) sim run --seeds $(CAMPAIGN_SEEDS)
	$(TIDEGATE) sim audit
	$(TIDEGATE) scenario run --orders --crash-at-every-step
	sim/planted/run.sh
	TIDEGATE_BIN="$$(realpath $(TIDEGATE))" cargo test --locked -p tidegate-tests --test kill -- --include-ignored

docs: ## make the book in target/book
	test -x $(TARGET_DIR)/tools/bin/mdbook || cargo install mdbook --locked --root $(TARGET_DIR)/tools
	$(TARGET_DIR)/tools/bin/mdbook build docs

bench: ## measure the program: one table of figures, with their limits
	cargo build --profile dist --locked -p tidegate
	cargo run --release --locked -p tidegate-bench -- $(BENCH_ARGS)

peers: build ## drive the gateway with real clients and servers, installed on the spot
	TIDEGATE_BIN="$$(realpath $(TIDEGATE))" tests/peers/run.sh all
