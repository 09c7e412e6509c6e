# The commands a newcomer needs. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# pyo3 must not link the test interpreter into the extension module; one setting for every cargo call keeps the cache warm.
export PYO3_BUILD_EXTENSION_MODULE := 1
export CARGO_TARGET_DIR ?= $(CURDIR)/target
PORTS ?= rust,c,python,node
CASES ?= conformance/cases
BIN := $(CARGO_TARGET_DIR)/debug

.PHONY: help demo test bench suites fuzz gen check-gen conformance parity build python node c shim-go shim-dotnet shim-swift shim-kotlin shim-java

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## an agent with a real MCP server, from Rust, Python and Node; no key, no network beyond package registries
	@.ci/demo

test: ## everything that CI runs, on a fresh machine
	@.ci/test

bench: ## overhead, streams, import time and size, each against a floor in the same run
	@.ci/bench

suites: ## public suites: MCP client conformance, and the official types of both providers; writes conformance/SUITES.md
	@.ci/suites

fuzz: ## run each fuzz target of the core: FUZZ_SECONDS=60 JOBS=1 TARGETS="sse schema"
	@.ci/fuzz

gen: build ## write the generated files
	@$(BIN)/toolspan-codegen write

check-gen: build ## fail when a generated file is stale
	@$(BIN)/toolspan-codegen check

# The shims of the languages beside C, Python and Node are built by the command that ports.json has for each.
comma := ,
OTHER := $(filter go dotnet swift kotlin java,$(subst $(comma), ,$(PORTS)))

conformance: build python node c $(addprefix shim-,$(OTHER)) ## run the suite: PORTS=python,go CASES=path
	@$(BIN)/toolspan-conformance run --fixtures $(BIN)/toolspan-fixtures --ports $(PORTS) --cases $(CASES)

shim-go: build
	@$(MAKE) --no-print-directory -s -C bindings/go BUILD=$(BIN) shim

shim-dotnet: build
	@bash bindings/dotnet/build.sh $(BIN)

shim-swift: build
	@bash bindings/swift/scripts/shim.sh $(BIN)

shim-kotlin shim-java: build
	@mvn -q -f bindings/jvm/pom.xml test-compile

parity: build python node c shim-go shim-dotnet shim-kotlin shim-java ## run the suite and write conformance/PARITY.md; every language that can run here
	@$(BIN)/toolspan-conformance parity --fixtures $(BIN)/toolspan-fixtures --out conformance/PARITY.md

build: ## compile every crate once
	@cargo build --workspace --quiet

python: build ## put the extension module beside the Python package
	@install -m 755 $(BIN)/lib_toolspan.so bindings/python/python/toolspan/_toolspan.abi3.so

node: build ## put the native module beside the Node package
	@install -m 755 $(BIN)/libtoolspan_node.so bindings/node/toolspan.node

c: build ## build the C example and the shim
	@$(MAKE) --no-print-directory -C bindings/c BUILD=$(BIN)
