# SPDX-License-Identifier: Apache-2.0
#
# Two cores are enough for everything here: steps that compile a lot run one after the other.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Builds, tests, linters and the control plane are compiled with the same flags (none), so that each package is
# compiled once; gcc is not needed. Only `make release` differs: its binaries must be reproducible.
export CGO_ENABLED := 0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
# What the names of the images begin with: in their archives, and in install.yaml of a release; empty for an example.
REGISTRY ?=
TOOL    := go tool -modfile=tools/go.mod

# Runs a command and says every ten seconds that it still runs: a cold build takes minutes.
PROGRESS := go run ./tests/progress

# What `make test` runs; narrow it with PKG=./internal/convert/... and RUN=TestName.
PKG ?= $(shell go list ./... | grep -v /tests/arch)
RUN ?= .
# The kubectl plugin for migrations is a module of its own; MIGRATE_PKG is what runs of it, with PKG only when it is given.
MIGRATE     := migrate
MIGRATE_PKG ?= $(if $(filter file,$(origin PKG)),./...)
# Packages that start a control plane take about 1 GB each, so at most two run at once.
# Vet runs once, as part of `make lint`.
TEST := -json -vet=off -p 2 -timeout 40m -run '$(RUN)'
# Reports failures of `go test` to tests/tally, which reads one stream of JSON.
FAILED := echo '{"Action":"go-test-failed"}'

# Packages that the race detector runs.
RACE_PKG ?= ./api/... ./internal/fetch/... ./internal/artifact/... ./internal/convert/... ./internal/apply/... \
	./internal/controller/...

FUZZTIME ?= 30s

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show the main job on a control plane of its own; DEMO_ONCE=1 ends by itself.
	@$(PROGRESS) -title 'building the controllers, the CLI and the demo' \
		go build -v -ldflags '$(LDFLAGS)' -o bin/ ./cmd/... ./tests/demo
	@exec bin/demo

.PHONY: demo-fleet
demo-fleet: ## Roll versions out to 50 simulated clusters, in waves; DEMO_ONCE=1 ends by itself.
	@$(PROGRESS) -title 'building the controllers, the CLI and the demo' \
		sh -c "go build -v -ldflags '$(LDFLAGS)' -o bin/ ./cmd/... && go build -v -o bin/demo-fleet ./tests/fleet/demo"
	@exec bin/demo-fleet

.PHONY: dev
dev: build ## Start a control plane, both controllers, a registry and a Git server for development, and print how to use them.
	@$(PROGRESS) -title 'building the servers' go build -v -ldflags '$(LDFLAGS)' -o bin/ ./tests/demo
	@exec bin/demo -servers

.PHONY: build
build: ## Build the controllers, the CLI and the kubectl plugin for migrations as static binaries into bin/.
	@$(PROGRESS) -title 'building the controllers and the CLI' \
		go build -v -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...
	@$(PROGRESS) -title 'building the plugin for migrations' \
		go build -C $(MIGRATE) -v -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/...

.PHONY: images
images: build ## Build container images from scratch as OCI archives into bin/images/; REGISTRY begins their names.
	go run ./build/image -version '$(VERSION)' -registry '$(REGISTRY)' -out bin/images

.PHONY: release
release: ## Build everything that a release consists of into dist/, reproducibly; REGISTRY says where images will be.
	rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
		go run ./build/release -version '$(VERSION)' -registry '$(REGISTRY)' -out dist

.PHONY: pages
pages: ## Write the reference pages of the command line and of the plugin, man pages and completions into dist/pages/.
	go run ./build/pages -out dist/pages
	go run -C $(MIGRATE) ./build/companions -out ../dist/pages

##@ Develop

.PHONY: generate
generate: ## Regenerate deep copies, CRDs, the embedded manifests and the reference pages.
	$(TOOL) controller-gen object:headerFile=tools/boilerplate.go.txt paths=./api/...
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	mv config/crd/bases/satchel.dev_bundlerollouts.yaml config/rollouts/crd/
	go run ./build/chart
	go test -count=1 -run TestReferenceIsCurrent ./tests/docs/reference -update >/dev/null

.PHONY: verify
verify: ## Fail when anything generated, formatted or tidied would change the tree.
	@$(PROGRESS) -title 'verifying' .ci/verify

.PHONY: lint
lint: ## Run golangci-lint, which includes go vet.
	@$(PROGRESS) -title 'golangci-lint' $(TOOL) golangci-lint run --timeout 20m ./...
	@$(PROGRESS) -title 'golangci-lint of the plugin' sh -c \
		'cd $(MIGRATE) && go tool -modfile=../tools/go.mod golangci-lint run --timeout 20m ./...'

##@ Test

# The architecture tests run again each time: the test cache does not see what `go list` reads.
.PHONY: test
test: cluster ## Run all tests and say how many ran and how long it took.
	@{ go test $(TEST) $(PKG) || $(FAILED); \
	   $(if $(MIGRATE_PKG),go test -C $(MIGRATE) $(TEST) $(MIGRATE_PKG) || $(FAILED);) \
	   go test -json -count=1 ./tests/arch || $(FAILED); } | go run ./tests/tally

.PHONY: cluster
cluster: ## Build the control plane for demo and tests: minutes once, then nothing.
	@$(PROGRESS) -title 'preparing the control plane' go run -v ./tests/controlplane/cmd/controlplane build

.PHONY: test-race
test-race: cluster ## Run libraries and controllers under the race detector (needs gcc).
	@command -v gcc >/dev/null || { echo 'make test-race: the race detector needs gcc; install it' >&2; exit 1; }
	@{ CGO_ENABLED=1 go test $(TEST) -race $(RACE_PKG) || $(FAILED); } | go run ./tests/tally

# What `make bench` measures, and how often: five times are the fewest from which a change can be told from noise.
BENCH     ?= .
COUNT     ?= 5
BENCH_PKG ?= $(PKG)
# Where figures are kept, a folder for each class of machine.
BENCH_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/satchel/bench
BENCHMARK := go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -p 1 -timeout 180m
REGRESS   := go run ./tests/regress -dir '$(BENCH_DIR)' -commit '$(VERSION)'

.PHONY: bench
bench: cluster ## Run the benchmarks and compare their figures with the baseline of this class of machine; narrow it with BENCH and BENCH_PKG.
	@$(BENCHMARK) $(BENCH_PKG) | $(REGRESS)

.PHONY: bench-baseline
bench-baseline: cluster ## Run the benchmarks and make their figures the baseline of this class of machine.
	@$(BENCHMARK) $(BENCH_PKG) | $(REGRESS) -accept

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (30s).
	@grep -rlE '^func Fuzz' --include='*_test.go' api internal cmd $(MIGRATE) | sort | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			echo "== $$target in $$(dirname "$$file")"; \
			go test -C "$$(dirname "$$file")" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x .; \
		done; \
	done

.PHONY: test-reliability
test-reliability: cluster fuzz ## Run the release suite: fuzzers, all tests (the artifact store at full size), race detector.
	@{ SATCHEL_FULL=1 go test -json -count=1 -p 1 -timeout 180m $(PKG) || $(FAILED); \
	   $(if $(MIGRATE_PKG),go test -C $(MIGRATE) -json -count=1 -p 1 -timeout 180m $(MIGRATE_PKG) || $(FAILED);) } \
		| go run ./tests/tally
	@$(MAKE) test-race

.PHONY: clean
clean: ## Remove what was built in this folder; the cached control plane stays.
	rm -rf bin dist
