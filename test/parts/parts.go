package main

// part is one command of a tier.
type part struct {
	name string
	dir  string // of the module, from the top folder; empty: the main module
	// command is run as it is. Of a part that tests, it is what comes after "go test -json": packages and flags, by bash.
	command string
	tests   bool
	race    bool
	cgo     bool     // with cgo, where there is a C compiler
	covers  bool     // its packages run a minimum of their statements
	lane    int      // parts of a lane run one after the other
	after   []string // names of parts of other lanes that must be done
	env     []string
	// kubernetes is the version of the control plane and kubectl, as in versions.env; empty: those of make build.
	kubernetes string
}

const (
	// importable are the packages of modules that other programs import, which "./..." leaves out.
	importable = "github.com/credence-id/credence/api/... github.com/credence-id/credence/execcredential/..."
	// programs are all packages whose tests need no program of make build.
	programs = "$(go list " + importable + " ./... | grep -v /credence/test/)"
	// builds are the tests of the release that build programs.
	builds    = "^Test(PublishedRelease|BuildOutsideACheckout)$"
	buildHelm = "build Helm, etcd and cert-manager"
	// sharedPlane are the end-to-end tests that share a plane.
	sharedPlane = "-skip '^Test(Plane|Node|Versions)' ./test/e2e"
	// sharedPlaneOlder are those on another version of Kubernetes. The first pages show what the newest kubectl prints.
	sharedPlaneOlder = "-skip '^Test(Plane|Node|Versions|FirstPages$)' ./test/e2e"
	compile          = "GOGC=off GOMEMLIMIT=1GiB go build"
	stripped         = ` -ldflags "-s -w" -o "$CREDENCE_BIN/" `
)

func buildKubernetes(lane int, version string) part {
	return part{name: "build Kubernetes " + version, command: "hack/kubernetes.sh " + version, lane: lane}
}

// onKubernetes are the parts that run tests on other versions of Kubernetes, in a lane.
func onKubernetes(lane int, versions []string, more ...part) []part {
	var all []part
	for _, version := range versions {
		all = append(all, buildKubernetes(lane, version), part{name: "end to end, on Kubernetes " + version, command: sharedPlaneOlder, tests: true, kubernetes: version, lane: lane})
		for _, p := range more {
			p.name, p.tests, p.kubernetes, p.lane = p.name+", on Kubernetes "+version, true, version, lane
			all = append(all, p)
		}
	}
	return all
}

// tiers are the parts by the target of the Makefile. A later tier repeats nothing of an earlier one, unless with the race detector.
var tiers = map[string][]part{
	"test": {
		{name: "end to end, on a shared plane", tests: true, lane: 1, command: sharedPlane},
		{name: "packages", tests: true, command: "-p 4 " + programs + " ./test/testkit/... ./test/parts ./test/words ./test/documents ./test/controlplane"},
		{name: "devcluster", tests: true, covers: true, dir: "devcluster", command: "./internal/...", lane: 2},
		{name: "release", tests: true, dir: "release", command: "-skip '" + builds + "' ./..."},
		{name: "benchmarks' own tests", tests: true, dir: "test/bench", command: ". ./allocations"},
	},
	"test-all": {
		{name: "programs from packages", command: "hack/node-programs.sh && test/login/programs.sh && hack/sdk-programs.sh && hack/device-programs.sh", lane: 1},
		{name: buildHelm, dir: "test/install", lane: 1, command: compile + stripped + "helm.sh/helm/v4/cmd/helm && " +
			compile + ` -ldflags "-s -w" -o "$CREDENCE_BIN/helm3" helm.sh/helm/v3/cmd/helm && ` +
			compile + ` -ldflags "-s -w" -o "$CREDENCE_BIN/etcd" go.etcd.io/etcd/server/v3 && cd certmanager && ` + compile + stripped + "."},
		{name: "build a registry and Prometheus", lane: 1, command: "cd test/e2e/registry && " + compile + stripped + "github.com/distribution/distribution/v3/cmd/registry && " +
			"cd ../../alerts/prometheus && " + compile + " -tags remove_all_sd" + stripped + "github.com/prometheus/prometheus/cmd/prometheus"},
		{name: "chart", tests: true, dir: "test/install", command: "-timeout 60m ./...", lane: 1},
		{name: "end to end, with planes and nodes", tests: true, lane: 1, command: "-timeout 90m -run '^Test(Plane|Node)' ./test/e2e"},

		{name: "race detector", tests: true, race: true, covers: true, command: "-timeout 45m " + programs},
		{name: "execcredential by its own go.mod", tests: true, command: "hack/alone.sh execcredential", dir: "."},
		{name: "execcredential/clientgo by its own go.mod", tests: true, command: "hack/alone.sh execcredential/clientgo", dir: "."},
		{name: "control planes, storage, importers", tests: true, command: "-timeout 45m ./test/storage/... ./test/landscapes/... ./test/importer/..."},
		{name: "logins", tests: true, command: "-timeout 45m ./test/login/...", after: []string{"programs from packages"}},
		{name: "devcluster's clusters", tests: true, dir: "devcluster", command: "-timeout 45m ./e2e/..."},
		{name: "workflows", tests: true, dir: "test/workflows", command: "."},
		{name: "build cosign and krew", dir: "test/release/cosign", command: compile + stripped + "github.com/sigstore/cosign/v3/cmd/cosign && " +
			"cd ../krew && " + compile + stripped + "sigs.k8s.io/krew/cmd/krew sigs.k8s.io/krew/cmd/validate-krew-manifest"},
		{name: "a release", tests: true, dir: "release", command: "-run '" + builds + "' ./...",
			after: []string{buildHelm, "build a registry and Prometheus"}},
		{name: "build MinIO", dir: "test/sdk/minio", command: compile + ` -ldflags "-s -w" -o "$CREDENCE_BIN/minio" github.com/minio/minio`},
		{name: "SDKs", tests: true, dir: "test/sdk", command: "-timeout 45m ./...", after: []string{"programs from packages"}},
		{name: "build gitops-engine", dir: "test/tools/argocd", command: compile + stripped + "."},
		{name: "other tools", tests: true, dir: "test/tools", command: "-timeout 30m ./...", after: []string{buildHelm}},
		{name: "build Velero's plugin", dir: "test/consumers", command: compile + stripped + "github.com/vmware-tanzu/velero-plugin-for-aws/velero-plugin-for-aws"},
		{name: "consumers of tokens", tests: true, dir: "test/consumers", command: "./..."},
		{name: "CSI", tests: true, dir: "test/csi", command: "./..."},
		{name: "security contexts beside Kubernetes", tests: true, dir: "test/securitycontext", command: "-timeout 30m ./..."},
		{name: "keys in devices", tests: true, cgo: true, dir: "test/pkcs11", command: "-timeout 30m ./...", after: []string{"programs from packages"}},
		{name: "alerts", tests: true, dir: "test/alerts", command: "./..."},
	},
	"test-long": {
		{name: "races of servers, twenty times, under load", tests: true, race: true, command: "-timeout 3h -count=20 ./internal/apiserver/... ./internal/app/... ./internal/delivery/... " +
			"./internal/discovery/... ./internal/externalsigner/... ./internal/keyring/... ./internal/admission/..."},
		{name: "load", lane: 1, command: "for i in {1..8}; do timeout 1h bash -c 'while :; do :; done' & done; wait || true"},
		{name: "a hundred killed pods", tests: true, lane: 2, command: "-timeout 60m -run '^TestNodeGuard$' ./test/e2e", env: []string{"CREDENCE_KILLED_PODS=100"}},
		{name: "all faults of parts", tests: true, lane: 2, command: "-timeout 60m -run '^TestPlaneDoctorNamesBrokenParts$' ./test/e2e", env: []string{"CREDENCE_PART_FAULTS=all"}},
		{name: "broken guards", lane: 2, command: "hack/guards/run.sh"},
	},
}
