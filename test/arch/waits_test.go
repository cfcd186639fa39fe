package arch_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shortestWait is the least time that a test gives what must happen: a deadline is for a machine that hangs, not for a slow one.
const shortestWait = time.Minute

// shortWaits are bounds below it, and why no test depends on them. A clock of testing/synctest needs no entry.
var shortWaits = map[string]string{
	"devcluster/internal/etcd/etcd_test.go: time.AfterFunc time.Second":                          "what it is about waits for minutes: the sooner it ends, the shorter the test",
	"devcluster/e2e/cluster_test.go: time.After 50 * time.Millisecond":                           "a pause between two looks",
	"internal/workloadidentities/follower_test.go: time.After 100 * time.Millisecond":            "a pause, after which the event is sent again",
	"execcredential/terminal_linux_test.go: time.After 300 * time.Millisecond":                   "nothing is to happen meanwhile: on a slow machine less happens",
	"execcredential/source_test.go: source.Status().Next.Sub 31 * time.Second":                   "both are times of the test's clock",
	"internal/app/up/up_test.go: time.Since stopGrace":                                           "it finds that the machine has stalled, and less is looked for then",
	"execcredential/pool_test.go: c.Timeout 1":                                                   "it is compared, and nothing runs",
	"internal/apiserver/storage/etcd_test.go: time.AfterFunc time.Second":                        "what it is about waits for longer: the sooner it ends, the shorter the test",
	"internal/credential/cache/lock_test.go: context.WithTimeout 50 * time.Millisecond":          "the lock is not released: the sooner it ends, the shorter the test",
	"internal/externalsigner/follower_test.go: context.WithTimeout shortly":                      "no answer comes: the sooner it ends, the shorter the test",
	"internal/relyingparty/conformance/defects_test.go: s.options.Timeout 10 * time.Millisecond": "no answer comes: the sooner it ends, the shorter the test",
	"test/install/load_test.go: config.Timeout patience":                                         "how long clients repeat what fails is what the test is about",
	"test/install/load_test.go: time.Since patience":                                             "how long clients repeat what fails is what the test is about",
	"internal/app/cli/credential/testdata/check.txtar: --timeout 1s":                             "the program never ends: the sooner it is judged, the shorter the test",
	"test/bench/client.go: http.Client 30 * time.Second":                                         "a server that takes so long has failed the measurement",
	"test/bench/discovery.go: http.Client 10 * time.Second":                                      "a server that takes so long has failed the measurement",
	"test/sdk/minio_test.go: time.After 100 * time.Millisecond":                                  "a pause between two looks",
	"internal/app/cli/renew/testdata/secrets.txtar: --timeout 1ms":                               "the token is never renewed: the sooner it ends, the shorter the test",
	"test/login/child_test.go: time.AfterFunc 10 * time.Second":                                  "it kills a program whose input has ended, after the test",
}

// written matches bounds of kubectl and of commands of ours in scripts and documents.
var written = regexp.MustCompile(`--(request-)?timeout[ =]"?([0-9.]+m?s)\b`)

// A test that gives up sooner than a slow machine is done fails on a slow machine alone.
func TestWaitsAreLong(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard", "*.go", "*.txtar", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	unused := maps.Clone(shortWaits)
	complain := func(file, wait string) {
		if delete(unused, file+": "+wait); shortWaits[file+": "+wait] == "" {
			t.Errorf("%s: %s is less than %s: a slow machine needs more. Wait with test/testkit, or for five minutes; a bound that is the subject of a test, or a pause between two looks, is listed in shortWaits with the reason", file, wait, shortestWait)
		}
	}
	folders, constants, read := map[string][]*ast.File{}, map[string]map[string]ast.Expr{}, 0
	files := token.NewFileSet()
	for _, name := range strings.Fields(string(out)) {
		text, err := os.ReadFile("../../" + name)
		if os.IsNotExist(err) { // deleted, and not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(name) != ".go" {
			for _, wait := range writtenWaits(string(text)) {
				complain(name, wait)
			}
			continue
		}
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folder := path.Dir(name)
		if constants[folder] == nil {
			constants[folder] = map[string]ast.Expr{}
		}
		addConstants(constants[folder], file)
		if isTest(name) {
			read++
			folders[folder] = append(folders[folder], file)
		}
	}
	if read < 100 {
		t.Fatalf("%d files of tests were read", read)
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		for _, wait := range waits(folders[folder], constants[folder]) {
			complain(files.Position(wait.at).Filename, wait.text)
		}
	}
	for entry := range unused {
		t.Errorf("shortWaits has %q, and no test waits so", entry)
	}
}

// isTest reports whether a Go file is part of tests: also of the packages that only tests import.
func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") || strings.HasSuffix(path.Dir(name), "test")
}

func writtenWaits(text string) []string {
	var found []string
	for _, match := range written.FindAllStringSubmatch(text, -1) {
		if length, err := time.ParseDuration(match[2]); err == nil && length < shortestWait {
			found = append(found, match[0])
		}
	}
	return found
}

// wait is a bound that is too short.
type wait struct {
	at   token.Pos
	text string
}

// addConstants adds those of a file, with their values.
func addConstants(constants map[string]ast.Expr, file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
			for i, name := range spec.Names {
				constants[name.Name] = spec.Values[i]
			}
		}
		return true
	})
}

// waits returns the short bounds of the files of a folder.
func waits(files []*ast.File, constants map[string]ast.Expr) []wait {
	var found []wait
	for _, file := range files {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && inBubble(function) {
				continue
			}
			kept := map[string]string{} // variables with an elapsed time, and what it is
			ast.Inspect(declaration, func(node ast.Node) bool {
				if a, ok := node.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && len(a.Rhs) == 1 {
					kept[types.ExprString(a.Lhs[0])] = elapsed(a.Rhs[0], nil)
				}
				what, length := bound(node, kept)
				if d, ok := duration(length, constants); ok && d > 0 && d < shortestWait {
					found = append(found, wait{node.Pos(), what + " " + types.ExprString(length)})
				}
				return true
			})
		}
	}
	slices.SortStableFunc(found, func(a, b wait) int { return cmp.Compare(a.at, b.at) })
	return found
}

// inBubble reports whether a function has the clock of testing/synctest, on which no time passes while something is done.
func inBubble(function *ast.FuncDecl) bool {
	bubble := false
	ast.Inspect(function, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		bubble = bubble || ok && types.ExprString(call.Fun) == "synctest.Test"
		return !bubble
	})
	return bubble
}

// bound returns how long a node lets something take, or nil.
func bound(node ast.Node, kept map[string]string) (what string, length ast.Expr) {
	switch n := node.(type) {
	case *ast.CallExpr:
		what = types.ExprString(n.Fun)
		switch {
		case what == "time.After" || what == "time.AfterFunc" || what == "time.NewTimer":
			return what, n.Args[0]
		case what == "context.WithTimeout" || what == "context.WithTimeoutCause":
			return what, n.Args[1]
		case what == "context.WithDeadline":
			return what, fromNow(n.Args[1])
		case strings.HasSuffix(what, "aitFor") && len(n.Args) > 1: // of testkit, and what calls it
			return what, n.Args[1]
		case strings.HasSuffix(what, "Deadline") && len(n.Args) == 1: // of connections
			return what, fromNow(n.Args[0])
		}
	case *ast.AssignStmt:
		if len(n.Lhs) != 1 || len(n.Rhs) != 1 {
			return "", nil
		}
		switch what = types.ExprString(n.Lhs[0]); {
		case strings.HasSuffix(what, "eadline"):
			return what, fromNow(n.Rhs[0])
		case strings.HasSuffix(what, ".Timeout"):
			return what, n.Rhs[0]
		}
	case *ast.CompositeLit:
		if n.Type == nil || types.ExprString(n.Type) != "http.Client" {
			return "", nil
		}
		for _, element := range n.Elts {
			if field, ok := element.(*ast.KeyValueExpr); ok && types.ExprString(field.Key) == "Timeout" {
				return "http.Client", field.Value
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.GTR || n.Op == token.GEQ {
			if what = elapsed(n.X, kept); what != "" {
				return what, n.Y
			}
		}
	}
	return "", nil
}

// elapsed returns the function that an elapsed time is of, also of one that is kept in a variable; empty for any other expression.
func elapsed(e ast.Expr, kept map[string]string) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return kept[types.ExprString(e)]
	}
	if what := types.ExprString(call.Fun); what == "time.Since" || strings.HasSuffix(what, ".Sub") {
		return what
	}
	return ""
}

// fromNow returns the argument of time.Now().Add, or nil.
func fromNow(e ast.Expr) ast.Expr {
	if call, ok := e.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "time.Now().Add" {
		return call.Args[0]
	}
	return nil
}

var units = map[string]time.Duration{
	"time.Nanosecond": time.Nanosecond, "time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
	"time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
}

// duration is the value of an expression of literals, units and constants; false for any other.
func duration(e ast.Expr, constants map[string]ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 10, 64)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		unit, ok := units[types.ExprString(e)]
		return unit, ok
	case *ast.Ident:
		value, ok := constants[e.Name]
		if !ok {
			return 0, false
		}
		return duration(value, nil)
	case *ast.BinaryExpr:
		x, known := duration(e.X, constants)
		y, too := duration(e.Y, constants)
		switch {
		case !known || !too:
		case e.Op == token.MUL:
			return x * y, true
		case e.Op == token.ADD:
			return x + y, true
		}
	}
	return 0, false
}

func TestWaitsAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", `package a
const patience = 30 * time.Second
func found() {
	<-time.After(time.Second)
	context.WithTimeout(ctx, patience)
	testkit.WaitFor(t, 5*time.Second+time.Millisecond, nil)
	for deadline := time.Now().Add(30 * time.Second); ; {}
	c.SetReadDeadline(time.Now().Add(time.Second))
	_ = &http.Client{Timeout: 10 * time.Second}
	if time.Since(begun) > 2*time.Second {}
	if ended.Sub(begun) >= 3*time.Second {}
	took := time.Since(begun)
	if took > patience {}
}
func passed() {
	<-time.After(time.Until(end))
	context.WithTimeout(ctx, 5*time.Minute)
	context.WithTimeout(ctx, patience*4)
	context.WithTimeout(ctx, -time.Second)
	_ = &tls.Config{Timeout: time.Second}
	expires := time.Now().Add(time.Second)
	if ended.Sub(begun) < time.Second || left > time.Second {}
}
func virtual() { synctest.Test(t, func(*testing.T) { <-time.After(time.Second) }) }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]ast.Expr{}
	addConstants(constants, file)
	var got []string
	for _, wait := range waits([]*ast.File{file}, constants) {
		got = append(got, wait.text)
	}
	want := []string{
		"time.After time.Second", "context.WithTimeout patience", "testkit.WaitFor 5 * time.Second + time.Millisecond", "deadline 30 * time.Second",
		"c.SetReadDeadline time.Second", "http.Client 10 * time.Second", "time.Since 2 * time.Second",
		"ended.Sub 3 * time.Second", "time.Since patience",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := writtenWaits("kubectl wait --timeout=30s x\ncredence get --request-timeout 100ms\nkubectl wait --timeout=5m y"); len(got) != 2 {
		t.Errorf("found %q in a script", got)
	}
}
