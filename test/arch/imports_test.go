package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/credence-id/credence"

// pkg is a package of the module, as go list prints it; paths of the module are relative to it.
type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Imports    []string
	Deps       []string
}

// rule names what packages matching from must not import, and why. Deep rules hold for imports of imports too.
type rule struct {
	from, not string
	except    string
	deep      bool
	why       string
}

// other matches packages of other modules.
const other = `^[a-z0-9-]+(\.[a-z0-9-]+)+/`

var rules = []rule{
	{from: `^internal/identity$`, not: other, deep: true, why: "the words of Credence need the standard library only"},
	{from: `^api/`, not: other, except: `^(k8s\.io/api/core/v1$|(k8s\.io/apimachinery|sigs\.k8s\.io/structured-merge-diff|k8s\.io/kube-openapi)/)`, why: "users of the types must not be given our dependencies"},
	{from: core, not: `^k8s\.io/(client-go|apiserver)/`, deep: true, why: "deciding is pure: clients are at the edge"},
	{from: core, not: `^(log|k8s\.io/klog/.*)$`, why: "the core logs nothing: its callers know what matters"},
	{from: logless, not: `^log/slog$`, why: "the core logs nothing; only values that hide secrets (identity, keyring/keys) know how they are logged"},
	{from: `^execcredential(/exectest)?$`, not: other, except: `^(golang\.org/x|go\.yaml\.in|sigs\.k8s\.io/yaml)(/|$)`, deep: true, why: "users of the library must not get our dependencies"},
	{from: `^execcredential`, not: `^(internal|api)/`, deep: true, why: "the library stands on its own"},
	{from: `^internal/target/[^/]+$`, not: `^internal/target/[^/]+$`, why: "one target system knows nothing of another"},
	{from: `.`, not: `^k8s\.io/apiserver/`, why: "k8s.io/apiserver has one importer, internal/apiserver, beside the wiring of its flags and the evaluation of policies in tests"},
	{from: `.`, not: `^go\.etcd\.io/etcd/server/`, why: "embedded storage has one importer"},
	{from: `.`, not: `^k8s\.io/cri-api/`, why: "the interface of container runtimes has few importers"},
	{from: `.`, not: `^devcluster(/|$)`, why: "devcluster is a program, not a library"},
	{from: `^cmd/credence$`, not: `^(k8s\.io/apiserver|go\.etcd\.io/etcd)/`, deep: true, why: "the command line starts fast and stays small"},
	{from: `^cmd/credence-discovery$`, not: `^k8s\.io/client-go/(kubernetes|informers)$`, deep: true, why: "it reads one ConfigMap: all clients of Kubernetes double its size"},
	{from: `^(cmd/credence-credential|internal/app/provider)$`, not: `^((k8s\.io|sigs\.k8s\.io|github\.com/spf13/cobra)(/|$)|net/http$)`, deep: true, why: "clients wait for the provider at each start: what is kept is served without the libraries of Kubernetes, and without a network"},
	{from: `^internal/credential(/cache|/file|/inorder|/oidc/settings|/tokenexchange|/workloadidentity|/workloadidentity/kubeconfig|/clientcertificate)?$`, not: `^(net/http|crypto/tls|github\.com/coreos/go-oidc/.*|(k8s\.io|sigs\.k8s\.io)/.*)$`, deep: true, why: "the program that serves what is kept imports them, and starts without a network"},
	{from: `^cmd/credence-server$`, not: `^internal/registry$`, deep: true, why: "the agent has no code that speaks to registries: credence-registry is a program of its own"},
	{from: `^internal/app/discovery$`, not: `^internal/(issuer|keyring)(/|$)`, deep: true, why: "the discovery server must not be able to read or use a private key"},
}

// exceptions are the packages for which a rule with from "." does not hold, by what they may import.
var exceptions = map[string]string{
	`^k8s\.io/apiserver/`:        `^(internal/(apiserver|app/apiserver)(/|$)|test/testkit/policies$)`,
	`^go\.etcd\.io/etcd/server/`: `^internal/apiserver/storage$`,
	`^k8s\.io/cri-api/`:          `^internal/(securitycontext/cri|node/guard)$`,
	`^devcluster(/|$)`:           `^$`,
}

func (r rule) violations(p pkg) []string {
	if !regexp.MustCompile(r.from).MatchString(p.ImportPath) {
		return nil
	}
	if exception, ok := exceptions[r.not]; ok && regexp.MustCompile(exception).MatchString(p.ImportPath) {
		return nil
	}
	imports := p.Imports
	if r.deep {
		imports = p.Deps
	}
	var found []string
	for _, i := range imports {
		if i != p.ImportPath && regexp.MustCompile(r.not).MatchString(i) && (r.except == "" || !regexp.MustCompile(r.except).MatchString(i)) {
			found = append(found, i)
		}
	}
	return found
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, r := range rules {
			for _, i := range r.violations(p) {
				t.Errorf("%s must not import %s: %s", p.ImportPath, i, r.why)
			}
		}
	}
}

// Each example breaks one rule, and each rule has an example: without the rule the test would fail.
func TestRulesCanFail(t *testing.T) {
	broken := map[string]bool{}
	for _, example := range []pkg{
		{ImportPath: "internal/identity", Deps: []string{"k8s.io/klog/v2"}},
		{ImportPath: "api/authentication/v1alpha1", Imports: []string{"github.com/go-jose/go-jose/v4"}},
		{ImportPath: "internal/issuer", Deps: []string{"k8s.io/client-go/rest"}},
		{ImportPath: "internal/issuer", Imports: []string{"log"}},
		{ImportPath: "internal/discovery", Imports: []string{"log/slog"}},
		{ImportPath: "internal/gmsa/lint", Imports: []string{"log/slog"}},
		{ImportPath: "internal/target/aws", Imports: []string{"internal/target/gcp"}},
		{ImportPath: "execcredential", Deps: []string{"k8s.io/client-go/rest"}},
		{ImportPath: "execcredential/clientgo", Deps: []string{"internal/identity"}},
		{ImportPath: "internal/securitycontext", Imports: []string{"k8s.io/cri-api/pkg/apis/runtime/v1"}},
		{ImportPath: "internal/relyingparty", Imports: []string{"k8s.io/apiserver/pkg/server"}},
		{ImportPath: "internal/apiserver", Imports: []string{"go.etcd.io/etcd/server/v3/embed"}},
		{ImportPath: "test/e2e", Imports: []string{"devcluster/internal/pki"}},
		{ImportPath: "cmd/credence", Deps: []string{"k8s.io/apiserver/pkg/server"}},
		{ImportPath: "cmd/credence-discovery", Deps: []string{"k8s.io/client-go/kubernetes"}},
		{ImportPath: "cmd/credence-credential", Deps: []string{"k8s.io/client-go/rest"}},
		{ImportPath: "internal/app/provider", Deps: []string{"github.com/spf13/cobra"}},
		{ImportPath: "internal/app/provider", Deps: []string{"net/http"}},
		{ImportPath: "internal/credential/oidc/settings", Deps: []string{"net/http"}},
		{ImportPath: "internal/credential/oidc/settings", Deps: []string{"crypto/tls"}},
		{ImportPath: "cmd/credence-server", Deps: []string{"internal/registry"}},
		{ImportPath: "internal/app/discovery", Deps: []string{"internal/keyring/keys"}},
	} {
		var by []string
		for _, r := range rules {
			if len(r.violations(example)) > 0 {
				by = append(by, r.why)
			}
		}
		if len(by) != 1 {
			t.Errorf("%+v breaks %d rules, want one: %q", example, len(by), by)
			continue
		}
		broken[by[0]] = true
	}
	for _, r := range rules {
		if !broken[r.why] {
			t.Errorf("no example breaks the rule that %s must not import %s: %s", r.from, r.not, r.why)
		}
	}
	if len(broken) != len(rules) {
		t.Errorf("%d rules have %d reasons: give each its own", len(rules), len(broken))
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	forbidden := []string{"util", "utils", "common", "helper", "helpers", "shared", "base", "manager"}
	for _, p := range packages(t) {
		if p.Doc == "" && p.Name != "" {
			t.Errorf("package %s has no package comment", p.ImportPath)
		}
		if slices.Contains(forbidden, path.Base(p.ImportPath)) {
			t.Errorf("package %s is named after nothing: name what it holds", p.ImportPath)
		}
	}
}

// packages are those of all hosts, each with what it imports on any of them.
func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := onAllHosts()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"api/authentication/v1alpha1", "execcredential", "execcredential/clientgo", "test/bench"} {
		if !slices.ContainsFunc(list, func(p pkg) bool { return p.ImportPath == place }) {
			t.Fatalf("go list did not find %s, which is in a module of its own", place)
		}
	}
	if !slices.ContainsFunc(list, func(p pkg) bool {
		return p.ImportPath == "internal/filelock" && slices.Contains(p.Imports, "golang.org/x/sys/windows")
	}) {
		t.Fatal("go list did not find what internal/filelock imports on Windows")
	}
	return list
}

// onAllHosts lists once for all tests, all systems at once.
var onAllHosts = sync.OnceValues(func() ([]pkg, error) {
	type listing struct {
		found []pkg
		err   error
	}
	listings, waiting := make(chan listing), 0
	for _, host := range []string{"linux", "darwin", "windows"} {
		for dir, pattern := range map[string]string{"../..": module + "/...", "../bench": "./..."} {
			waiting++
			go func() {
				found, err := listed(host, dir, pattern)
				listings <- listing{found, err}
			}()
		}
	}
	byPath, failure := map[string]pkg{}, error(nil)
	for range waiting {
		l := <-listings
		failure = errors.Join(failure, l.err)
		for _, p := range l.found {
			other := byPath[p.ImportPath]
			p.Imports, p.Deps = union(other.Imports, p.Imports), union(other.Deps, p.Deps)
			byPath[p.ImportPath] = p
		}
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) }), failure
})

// union has each member of two lists once, sorted.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func listed(host, dir, pattern string) ([]pkg, error) {
	command := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,Deps", pattern)
	command.Dir = dir
	command.Env = append(command.Environ(), "GOOS="+host)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w\n%s", host, err, stderr.String())
	}
	var list []pkg
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		p.ImportPath = relative(p.ImportPath)
		for _, imports := range [][]string{p.Imports, p.Deps} {
			for i := range imports {
				imports[i] = relative(imports[i])
			}
		}
		list = append(list, p)
	}
}

// relative takes the module off an import path. The standard library has an internal folder too, which no rule is about.
func relative(importPath string) string {
	if strings.HasPrefix(importPath, "internal/") {
		return "std/" + importPath
	}
	return strings.TrimPrefix(importPath, module+"/")
}
