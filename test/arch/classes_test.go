package arch_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// class is what a package is for, which decides what it may import.
type class struct {
	name    string
	holds   string
	imports []string // classes
	why     string
}

// core decides, and needs nothing but its arguments.
const core = `^internal/(access|accounts|admission/(facts|pods|secrets|templates)|authority|backup|boundtoken|certificates|clouderror|delivery/(failures|renewal|rights)|discovery|drift|gmsa(/(convert|generate|lint))?|issuer|keyring/keys|profile(/(fit|lint|username))?|` +
	`securitycontext(/cri)?|target(/[a-z]*` + noTest + `)?|targets|tokensecret|trust)$`

// logless is the core without the package of values that hide secrets in logs.
var logless = strings.Replace(core, "|keyring/keys", "", 1)

// noTest is the end of the name of a package that is not for tests.
const noTest = `([^t]|[^s]t|[^e]st|[^t]est)`

// classes are in the order of the tree, from the inside out. Each package is in exactly one.
var classes = []class{
	{"ground", `^internal/(atomicfile|decision|endpoint|filelock|filewatch|identity|jsonfields|liveread|minors|pki|stack|strictjson|tokenendpoint(/network)?|version|wording)$`, nil, "it knows nothing of Credence but its words"},
	{"api", `^api/`, nil, "importers of the types get the types alone"},
	{"library", `^execcredential(/clientgo)?$`, []string{"library"}, "importers of the library get the library alone"},
	{"core", core, []string{"ground", "api", "core"}, "a decision needs nothing but its arguments"},
	{"client", `^internal/(cluster|credential(/(cache|clientcertificate|file|inorder|keptfile|oidc(/settings)?|tokenexchange(/https)?|workloadidentity(/(kubeapi|kubeconfig))?))?|` +
		`discovery/source|drift/survey|gmsa/credentialspecs|keyring/(keystore|report|settings)|membership|registry|relyingparty(/conformance)?|workloadidentities)$`,
		[]string{"ground", "api", "library", "core", "client"}, "it reads or calls another system, and serves none"},
	{"answer", `^internal/(doctor|explain|inventory)$`, []string{"ground", "api", "core", "client", "answer"}, "it returns a value, which commands print"},
	{"service", `^internal/(admission/webhook|apiserver(/.*` + noTest + `)?|certificates/keeper|delivery(/(accounts|bindings|contexts|gates|outage|pullsecrets|reports|secrets|secretwatch|selftokens|workers|workload))?|discovery/(comparison|publication)|` +
		`externalsigner(/(ledgerstore|service))?|keyring|node/(csi|guard|volumes)|profiles(/(drift|guards|namespaces))?|registration)$`,
		[]string{"ground", "api", "core", "client", "service"}, "it runs in a program, which puts it together with others"},
	{"manifests", `^deploy$`, nil, "manifests are files"},
	{"app", `^internal/app/.*` + noTest + `$`, []string{"ground", "api", "library", "core", "client", "answer", "service", "manifests", "app"}, "it puts a program together"},
	{"program", `^cmd/`, []string{"app"}, "a program is flags and app.Run"},
	{"test", `^test/|^internal/.+/(admissiontest|apiservertest|authoritytest|clitest|clustertest|contextstest|deliverytest|externalsignertest|keystoretest|oidctest|relyingpartytest|targettest)$|^execcredential/exectest$`, []string{"ground", "api", "library", "core", "client", "answer", "service", "manifests", "app", "test"}, "a test may see everything but programs"},
}

// apart are the classes whose packages import no other of the class but those of their own folder.
var apart = []string{"client", "service", "app"}

// beside are the imports that apart does not hold for, with the reason.
var beside = map[[2]string]string{
	{"internal/apiserver", "internal/keyring"}:                     "the API server serves the operations of the ring",
	{"internal/apiserver/registry/keyring", "internal/keyring"}:    "the API server serves the operations of the ring",
	{"internal/drift/survey", "internal/cluster"}:                  "it reads a cluster as commands do",
	{"internal/keyring", "internal/discovery/publication"}:         "a key is used when it is published, and no sooner",
	{"internal/app/agent", "internal/app/serving"}:                 "all servers serve health and metrics alike",
	{"internal/app/agent", "internal/app/serving/eventing"}:        "all servers write Events alike",
	{"internal/app/apiserver", "internal/app/serving"}:             "all servers serve health and metrics alike",
	{"internal/app/apiserver", "internal/app/serving/tracing"}:     "all servers send traces alike",
	{"internal/app/webhook", "internal/app/serving/tracing"}:       "all servers send traces alike",
	{"internal/app/binder", "internal/app/serving"}:                "all servers serve health and metrics alike",
	{"internal/app/certificates", "internal/app/serving"}:          "all servers serve health and metrics alike",
	{"internal/app/certificates", "internal/app/serving/eventing"}: "all servers write Events alike",
	{"internal/app/certificates", "internal/app/serving/election"}: "replicas of all servers are elected alike",
	{"internal/app/controller", "internal/app/serving/election"}:   "replicas of all servers are elected alike",
	{"internal/app/controller", "internal/app/serving"}:            "all servers serve health and metrics alike",
	{"internal/app/controller", "internal/app/serving/eventing"}:   "all servers write Events alike",
	{"internal/app/discovery", "internal/app/serving"}:             "all servers serve health and metrics alike",
	{"internal/app/imagecredentials", "internal/app/serving"}:      "all programs on servers report wrong flags alike",
	{"internal/app/node", "internal/app/serving"}:                  "all programs on servers report wrong flags alike",
	{"internal/app/profiles", "internal/app/serving"}:              "all servers serve health and metrics alike",
	{"internal/app/profiles", "internal/app/serving/eventing"}:     "all servers write Events alike",
	{"internal/app/registry", "internal/app/serving"}:              "all servers serve health and metrics alike",
	{"internal/app/registry", "internal/app/serving/eventing"}:     "all servers write Events alike",
	{"internal/app/signer", "internal/app/serving"}:                "all servers serve health and metrics alike",
	{"internal/app/storage", "internal/app/serving"}:               "all commands of credence-server report wrong flags alike",
	{"internal/app/webhook", "internal/app/serving"}:               "all servers serve health and metrics alike",
	{"internal/app/cli/credential", "internal/app/provider"}:       "credence has the provider as a command, too",
}

func classesOf(importPath string) []class {
	return slices.DeleteFunc(slices.Clone(classes), func(c class) bool { return !regexp.MustCompile(c.holds).MatchString(importPath) })
}

// folder is the first folder of a package below internal or internal/app.
func folder(importPath string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(importPath, "internal/"), "app/"), "/")
	return parts[0]
}

// misplaced returns what the classes forbid of a package of the module; ours holds all of its packages.
func misplaced(p pkg, ours []string) []string {
	own := classesOf(p.ImportPath)
	if len(own) != 1 {
		return []string{p.ImportPath + " is in " + strings.Join(names(own), ", ") + ", want one class"}
	}
	var found []string
	for _, i := range p.Imports {
		if !slices.Contains(ours, i) {
			continue
		}
		for _, imported := range classesOf(i) {
			switch _, excepted := beside[[2]string{p.ImportPath, i}]; {
			case !slices.Contains(own[0].imports, imported.name):
				found = append(found, p.ImportPath+" must not import "+i+": "+own[0].why)
			case imported.name == own[0].name && slices.Contains(apart, imported.name) && folder(p.ImportPath) != folder(i) && !excepted:
				found = append(found, p.ImportPath+" must not import "+i+", which is beside it")
			}
		}
	}
	return found
}

func names(list []class) []string {
	all := make([]string, 0, len(list))
	for _, c := range list {
		all = append(all, c.name)
	}
	return all
}

func importPaths(list []pkg) []string {
	paths := make([]string, 0, len(list))
	for _, p := range list {
		paths = append(paths, p.ImportPath)
	}
	return paths
}

// Each package is in one class, and imports what its class may.
func TestClasses(t *testing.T) {
	list := packages(t)
	ours := importPaths(list)
	for _, p := range list {
		for _, problem := range misplaced(p, ours) {
			t.Error(problem)
		}
	}
	for pair := range beside {
		if !slices.ContainsFunc(list, func(p pkg) bool { return p.ImportPath == pair[0] && slices.Contains(p.Imports, pair[1]) }) {
			t.Errorf("%s does not import %s: take the exception off", pair[0], pair[1])
		}
	}
	for _, c := range classes {
		if !slices.ContainsFunc(list, func(p pkg) bool { return regexp.MustCompile(c.holds).MatchString(p.ImportPath) }) {
			t.Errorf("class %s has no package", c.name)
		}
	}
}

// Each example breaks one rule, and each rule has an example: what a class may import, and what its packages import beside them.
func TestClassesCanFail(t *testing.T) {
	broken := map[string]bool{}
	for _, example := range []pkg{
		{ImportPath: "internal/unheardof"},
		{ImportPath: "internal/identity", Imports: []string{"internal/issuer"}},
		{ImportPath: "api/authentication/v1alpha1", Imports: []string{"internal/identity"}},
		{ImportPath: "execcredential", Imports: []string{"internal/identity"}},
		{ImportPath: "internal/issuer", Imports: []string{"internal/keyring/keystore"}},
		{ImportPath: "internal/keyring/keystore", Imports: []string{"internal/keyring"}},
		{ImportPath: "internal/relyingparty", Imports: []string{"internal/discovery/source"}},
		{ImportPath: "internal/doctor", Imports: []string{"internal/delivery"}},
		{ImportPath: "internal/delivery", Imports: []string{"internal/admission/webhook"}},
		{ImportPath: "internal/delivery", Imports: []string{"internal/app/agent"}},
		{ImportPath: "internal/delivery", Imports: []string{"internal/keyring/keystore/keystoretest"}},
		{ImportPath: "internal/delivery", Imports: []string{"test/testkit"}},
		{ImportPath: "internal/app/agent", Imports: []string{"internal/app/webhook"}},
		{ImportPath: "internal/app/agent", Imports: []string{"cmd/credence"}},
		{ImportPath: "cmd/credence", Imports: []string{"internal/relyingparty"}},
		{ImportPath: "test/e2e", Imports: []string{"cmd/credence"}},
		{ImportPath: "deploy", Imports: []string{"internal/identity"}},
	} {
		problems := misplaced(example, append(example.Imports, example.ImportPath))
		if len(problems) != 1 {
			t.Errorf("%+v breaks %d rules, want one: %q", example, len(problems), problems)
			continue
		}
		for _, c := range classesOf(example.ImportPath) {
			if strings.HasSuffix(problems[0], c.why) {
				broken[c.name] = true
			} else {
				broken["beside "+c.name] = true
			}
		}
	}
	for _, c := range classes {
		if !broken[c.name] {
			t.Errorf("no example breaks the rule of class %s: %s", c.name, c.why)
		}
	}
	for _, name := range apart {
		if !broken["beside "+name] {
			t.Errorf("no example of class %s imports a package beside it", name)
		}
	}
}
