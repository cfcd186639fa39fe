# Everything a developer does is a target here; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
BIN := $(CURDIR)/bin
include versions.env
FUZZTIME ?= 60s
# The packages that other programs import are modules of their own, which "./..." leaves out.
PACKAGES := ./... github.com/credence-id/credence/api/... github.com/credence-id/credence/execcredential/...
# go build, whose compilers are done before their memory needs to be collected: see hack/build.sh.
COMPILE := GOGC=off GOMEMLIMIT=1GiB go build

# The version of the control plane; without it, that is v0.0.0-master.
version_flags = -X $(1).gitVersion=$(KUBERNETES) -X $(1).gitMajor=1 -X $(1).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES)))
DEVCLUSTER_LDFLAGS := -s -w $(call version_flags,k8s.io/component-base/version) $(call version_flags,k8s.io/client-go/pkg/version)

# Static programs, and one build cache for build, vet and tests; only the race detector needs cgo.
export CGO_ENABLED := 0
# No path of this machine is in a program, and no data for a debugger, which takes a fifth of the time to compile. In tests and vet
# too, so that they share the cache. To debug a test, run go without these flags.
export GOFLAGS += -trimpath -gcflags=all=-dwarf=false

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-17s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## Build every program into bin/ (6 to 7 minutes the first time, on 2 cores; then seconds)
	@mkdir -p $(BIN)
	@echo "building Credence"
	@hack/build.sh $(BIN) "-s -w" ./cmd/...
	@ln -sf credence $(BIN)/kubectl-credence && ln -sf credence $(BIN)/kubectl_complete-credence
	@echo "building the control plane"
	@cd devcluster && ../hack/build.sh $(BIN) "$(DEVCLUSTER_LDFLAGS)" ./cmd/...

.PHONY: up
up: build ## Build, and start everything on this machine
	$(BIN)/credence up

# Tests do not vet: make verify vets all of this, and "go test" would vet each dependency again, with flags of its own.
.PHONY: test
test: build ## Run every test: unit, property, fuzz seeds, command line, real API servers
	@# Downloads come while compilers run, and tests that mostly wait for pods run beside those that need the CPU.
	@$(MAKE) --no-print-directory -j 2 --output-sync=line downloads compiled
	@$(MAKE) --no-print-directory -j 2 --output-sync=line test-install test-parts
	@# Nothing beside it: its planes share the inotify instances of a user among themselves.
	CREDENCE_BIN=$(BIN) go test -vet=off -count=1 -timeout 90m ./test/e2e

# The programs of others that tests run, from packages.
.PHONY: downloads
downloads:
	hack/node-programs.sh
	test/login/programs.sh
	hack/sdk-programs.sh
	hack/device-programs.sh

# Packages with the race detector, and the programs of others that tests run, from source.
.PHONY: compiled
compiled:
	@echo "compiling with the race detector; the first time takes some minutes"
	CGO_ENABLED=1 $(COMPILE) -race $(PACKAGES)
	@echo "building Prometheus for the tests of dashboards and alerts, and a registry for those of private images"
	cd test/alerts/prometheus && $(COMPILE) -tags remove_all_sd -ldflags "-s -w" -o $(BIN)/ github.com/prometheus/prometheus/cmd/prometheus
	cd test/e2e/registry && $(COMPILE) -ldflags "-s -w" -o $(BIN)/ github.com/distribution/distribution/v3/cmd/registry
	@echo "building Helm, etcd and cert-manager for the tests of the chart"
	cd test/install && $(COMPILE) -ldflags "-s -w" -o $(BIN)/ helm.sh/helm/v4/cmd/helm
	cd test/install && $(COMPILE) -ldflags "-s -w" -o $(BIN)/helm3 helm.sh/helm/v3/cmd/helm
	$(MAKE) --no-print-directory $(BIN)/etcd
	cd test/install/certmanager && $(COMPILE) -ldflags "-s -w" -o $(BIN)/ .
	@echo "building MinIO for the tests of SDKs; the first time takes some minutes"
	cd test/sdk/minio && $(COMPILE) -ldflags "-s -w" -o $(BIN)/minio github.com/minio/minio

# An etcd by itself, of the version that is embedded.
.PHONY: $(BIN)/etcd
$(BIN)/etcd:
	cd test/install && $(COMPILE) -ldflags "-s -w" -o $@ go.etcd.io/etcd/server/v3

.PHONY: test-install
test-install:
	cd test/install && CREDENCE_BIN=$(BIN) go test -vet=off -count=1 -timeout 60m ./...

.PHONY: test-parts
test-parts:
	GORACE=atexit_sleep_ms=10 CGO_ENABLED=1 go test -race -vet=off -timeout 45m $$(go list $(PACKAGES) | grep -v /test/)
	hack/alone.sh execcredential test -vet=off -count=1 ./...
	hack/alone.sh execcredential/clientgo test -vet=off -count=1 ./...
	CREDENCE_BIN=$(BIN) go test -vet=off -count=1 -timeout 45m $$(go list ./test/... | grep -v /test/e2e)
	cd test/bench && CREDENCE_BIN=$(BIN) go test -vet=off -count=1 -timeout 30m ./...
	cd test/sdk && CREDENCE_BIN=$(BIN) go test -vet=off -count=1 -timeout 45m ./...
	cd test/csi && CREDENCE_BIN=$(BIN) go test -vet=off -count=1 -timeout 10m ./...
	cd test/securitycontext && go test -vet=off -count=1 -timeout 30m ./...
	cd release && go test -vet=off -count=1 -timeout 30m ./...
	cd test/pkcs11 && CREDENCE_BIN=$(BIN) CGO_ENABLED=$$(command -v $${CC:-gcc} >/dev/null && echo 1 || echo 0) go test -vet=off -count=1 -timeout 30m ./...
	cd devcluster && DEVCLUSTER_BIN=$(BIN)/credence-devcluster go test -vet=off -count=1 -timeout 45m ./...

.PHONY: verify
verify: ## Check format, vet, lint, generated code, modules and import rules
	hack/verify.sh

.PHONY: generate
generate: ## Make the generated code anew
	hack/generate.sh

RELEASE = --source .. --out $(BIN)/release $(if $(PLATFORMS),--platform $(PLATFORMS)) $(if $(VERSION),--version $(VERSION))

.PHONY: images
images: ## Build the container images into bin/release: OCI layout, archive, SBOMs; PLATFORMS=linux/amd64 for one alone, VERSION=v0.1.0 for a release
	cd release && go run . images $(RELEASE)

.PHONY: push
push: ## Push the images of bin/release: make push REGISTRY=registry.example.com/credence
	cd release && go run . push --out $(BIN)/release "$(REGISTRY)"

.PHONY: release
release: ## Build archives of the client programs, of the kubelets' program and of the chart into bin/release, and show the go.mod of each module: make release VERSION=v0.1.0. Without VERSION, of the version of the commit
	@$(if $(VERSION),for module in api execcredential execcredential/clientgo .; do echo "== $$module/go.mod"; hack/release.sh "$(VERSION)" $$module; done,echo "no VERSION: all has the version of the commit, and no go.mod of a release is shown")
	cd release && go run . archives $(RELEASE)

.PHONY: retractions
retractions: ## Look up which versions of modules were retracted since they were taken; needs a module proxy
	hack/modules.sh -retracted -e | (cd release && go run . modules --source ..)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (60s)
	hack/fuzz.sh $(FUZZTIME)

.PHONY: soak
soak: build ## Kill the parts of a node in each step of 100 pods; Linux, as root
	CREDENCE_BIN=$(BIN) CREDENCE_KILLED_PODS=100 go test -count=1 -timeout 30m -v -run '^TestNodeGuard$$' ./test/e2e

.PHONY: bench
bench: build $(BIN)/etcd ## Measure a plane beside its peers: one table, also in bin/benchmarks.md
	go build -C test/bench -o $(BIN)/ .
	$(BIN)/bench -bin $(BIN) -out $(BIN)/benchmarks.md

.PHONY: bench-allocations
bench-allocations: ## Compare allocations of hot paths with the baseline; ARGS=-update writes it anew
	cd test/bench && go test -count=1 -v ./allocations $(ARGS)

.PHONY: clean
clean: ## Remove what was built, and stop what runs in .credence
	if [ -x $(BIN)/credence ]; then $(BIN)/credence down; fi
	rm -rf $(BIN) .credence
