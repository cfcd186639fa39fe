# Everything a developer does is a target here; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
# The path of the checkout may have spaces.
BIN := "$(CURDIR)/bin"
include versions.env
FUZZTIME ?= 60s

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
build: needs ## Build every program into bin/ (6 to 7 minutes the first time, on 2 cores; then seconds)
	@mkdir -p $(BIN)
	@echo "building Credence"
	@hack/build.sh $(BIN) "-s -w" ./cmd/...
	@ln -sf credence $(BIN)/kubectl-credence && ln -sf credence $(BIN)/kubectl_complete-credence
	@echo "building the control plane"
	@cd devcluster && ../hack/build.sh $(BIN) "$(DEVCLUSTER_LDFLAGS)" ./cmd/...

.PHONY: up
up: build ## Build, and start everything on this machine
	$(BIN)/credence up

# Tests do not vet: make check vets all of this, and "go test" would vet each dependency again, with flags of its own.
.PHONY: test
test: build ## Run the tests that need nothing but Go: packages, command line, fuzz seeds, first pages and a shared plane
	@go run ./test/parts $(ARGS) test

.PHONY: test-all
test-all: build ## Run all other tests: race detector, planes, nodes, chart, SDKs, logins, alerts, documents
	@go run ./test/parts $(ARGS) test-all

.PHONY: test-versions
test-versions: build ## Run tests on each older minor of Kubernetes, whose programs are built first (5 minutes for each on 2 CPUs, the first time)
	@go run ./test/parts $(ARGS) test-versions

.PHONY: test-long
test-long: build ## Run what takes hours or repeats: races twenty times under load, broken guards, many killed pods
	@go run ./test/parts $(ARGS) test-long

# Prints which needs of the build this machine does not meet, before anything is built.
.PHONY: needs
needs:
	@hack/needs.sh

.PHONY: check
check: ## Check format, vet, generated code, modules, import rules, names and links of documents, and words
	hack/check.sh

.PHONY: verify
verify: check ## Check what a merge needs besides: cross builds, and lint of all modules
	hack/verify.sh

.PHONY: generate
generate: ## Make the generated code anew
	hack/generate.sh

RELEASE = --source .. --out $(BIN)/release $(if $(PLATFORMS),--platform $(PLATFORMS)) $(if $(VERSION),--version $(VERSION))

.PHONY: images
images: ## Build the container images into bin/release: OCI layout, archive, SBOMs; PLATFORMS=linux/amd64 for one alone, VERSION=v0.1.0 for a release
	cd release && go run . images $(RELEASE)

.PHONY: push
push: ## Push images, chart, SBOMs and signatures of bin/release: make push REGISTRY=registry.example.com/credence
	@[ -n "$(REGISTRY)" ] || { echo "REGISTRY is missing: make push REGISTRY=registry.example.com/credence" >&2; exit 2; }
	cd release && go run . push --out $(BIN)/release "$(REGISTRY)"

.PHONY: release
release: ## Build and sign all that is published into bin/release, and show the go.mod of each module: make release VERSION=v0.1.0 KEY=cosign.key. Without VERSION, of the version of the commit
	@$(if $(VERSION),for module in api execcredential execcredential/clientgo .; do echo "== $$module/go.mod"; hack/release.sh "$(VERSION)" $$module; done,echo "no VERSION: all has the version of the commit, and no go.mod of a release is shown")
	cd release && go run . release $(RELEASE) $(if $(KEY),--key $(if $(filter none,$(KEY)),none,"$(abspath $(KEY))")) $(if $(URL),--url $(URL))

.PHONY: sign-keyless
COSIGN_PROGRAM ?= cosign
sign-keyless: ## Sign a release by an identity in place of a key, after its push: make sign-keyless PUSHED=FILE, with the output of make push
	@[ -f "$(PUSHED)" ] || { echo "PUSHED is not a file with the output of make push" >&2; exit 2; }
	references=$$(awk '/^pushed .*@/ { print $$2 }' "$(PUSHED)"); [ -n "$$references" ] || { echo "$(PUSHED) names no image that was pushed" >&2; exit 2; }; \
	for reference in $$references; do $(COSIGN_PROGRAM) sign --yes $(COSIGN_FLAGS) "$$reference"; done
	$(COSIGN_PROGRAM) sign-blob --yes $(COSIGN_FLAGS) --bundle $(BIN)/release/checksums.txt.sigstore.json $(BIN)/release/checksums.txt
	$(COSIGN_PROGRAM) attest-blob --yes $(COSIGN_FLAGS) --bundle $(BIN)/release/provenance.json.sigstore.json --statement $(BIN)/release/provenance.json

.PHONY: rebuild-check
rebuild-check: ## Build a release anew, and compare all digests: make rebuild-check PROVENANCE=provenance.json; without it, that of bin/release
	cd release && go run . rebuild --source .. $(if $(PROVENANCE),"$(abspath $(PROVENANCE))",$(BIN)/release/provenance.json)

.PHONY: retractions
retractions: ## Look up which versions of modules were retracted since they were taken; needs a module proxy
	hack/modules.sh -retracted -e | (cd release && go run . modules --source ..)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (60s)
	hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build ## Measure a plane beside its peers: one table, also in bin/benchmarks.md
	cd test/install && GOGC=off GOMEMLIMIT=1GiB go build -ldflags "-s -w" -o $(BIN)/etcd go.etcd.io/etcd/server/v3
	go build -C test/bench -o $(BIN)/ .
	$(BIN)/bench -bin $(BIN) -out $(BIN)/benchmarks.md

.PHONY: bench-allocations
bench-allocations: ## Compare allocations of hot paths with the baseline; ARGS=-update writes it anew
	cd test/bench && go test -count=1 -v ./allocations $(ARGS)

.PHONY: clean
clean: ## Remove what was built, and stop what runs in .credence
	if [ -x $(BIN)/credence ]; then $(BIN)/credence down; fi
	rm -rf $(BIN) .credence
