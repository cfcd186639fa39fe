package arch_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// changing matches commands, and grants without one, that need more rights than the reader of a refusal may have.
var changing = regexp.MustCompile(`kubectl (annotate|apply|auth reconcile|create|delete|drain|edit|label|patch|replace|rollout|scale|taint)|` +
	`grant it the verb|credence (access (grant|policy)|account create|backup restore|cluster (join|leave)|enable|identity release|keys (acknowledge|initialize|revoke|rotate)|renew)`)

// named matches the words by which a message names the users who may run its command.
var named = regexp.MustCompile(`cluster admin|admin of (the|its|that) (namespace|cluster)|operator of the keys|with ClusterRole|users? who may|granters`)

// A message that suggests a command names the users who may run it.
func TestSuggestedCommandsNameTheirUsers(t *testing.T) {
	found := 0
	check := func(where, text string) {
		if !changing.MatchString(text) {
			return
		}
		if found++; !named.MatchString(text) {
			t.Errorf("%s suggests a command, and not who may run it:\n%s", where, text)
		}
	}
	for _, place := range []string{"cmd", "internal"} {
		err := filepath.WalkDir("../../"+place, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "zz_generated") {
				return err
			}
			eachMessage(t, path, check)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	manifests, err := filepath.Glob("../../deploy/*/*.yaml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%d manifests, %v", len(manifests), err)
	}
	for _, path := range manifests {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(content), "\n---") {
			var object any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			eachText(object, func(text string) { check(path, text) })
		}
	}
	if found < 70 {
		t.Errorf("%d messages suggest a command, which are fewer than there are", found)
	}
}

// unquoted matches a user of the request in a command of a policy that is not quoted: any text can be the name of a user.
var unquoted = regexp.MustCompile(`(--user=|--serviceaccount=| -- )'(,| \+) (request\.userInfo\.username|variables\.annotations|variables\.identityName)`)

// A name in a suggested command is one argument, whatever it holds: programs quote it by wording.Argument, and policies by one expression.
func TestSuggestedCommandsQuoteNames(t *testing.T) {
	const argument = `n.matches('^[A-Za-z0-9][A-Za-z0-9@._:/=+-]*$') ? n : "'" + n.replace("'", "'\\''") + "'"`
	manifests, err := filepath.Glob("../../deploy/*/*.yaml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%d manifests, %v", len(manifests), err)
	}
	found := 0
	for _, path := range manifests {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(content), "\n") {
			if strings.Contains(line, "n.matches('^[A-Za-z0-9]") {
				if found++; !strings.Contains(line, argument) {
					t.Errorf("%s:%d quotes otherwise than all others, by %s", path, i+1, argument)
				}
			}
			if unquoted.MatchString(line) {
				t.Errorf("%s:%d has a name that is not quoted:\n%s", path, i+1, line)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d expressions quote a name, which are fewer than there are", found)
	}
	err = filepath.WalkDir("../../internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte("--user=%s")) && !bytes.Contains(content, []byte("wording.Argument(")) {
			t.Errorf("%s suggests a command for a user whose name is not quoted", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eachText visits the strings of an object: a message may be put together by a variable of a policy.
func eachText(value any, visit func(string)) {
	switch value := value.(type) {
	case string:
		visit(value)
	case []any:
		for _, v := range value {
			eachText(v, visit)
		}
	case map[string]any:
		for _, v := range value {
			eachText(v, visit)
		}
	}
}

// eachMessage visits the source of calls, and of constants, whose texts may become messages. Texts of --help are not messages.
func eachMessage(t *testing.T, path string, visit func(where, text string)) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.KeyValueExpr:
			key, _ := node.Key.(*ast.Ident)
			return key == nil || !slices.Contains([]string{"Long", "Example", "example"}, key.Name)
		case *ast.CallExpr, *ast.ValueSpec, *ast.ReturnStmt, *ast.AssignStmt, *ast.BasicLit:
		default:
			return true
		}
		text := source[files.Position(node.Pos()).Offset:files.Position(node.End()).Offset]
		if bytes.Contains(text, []byte("func(")) || bytes.Contains(text, []byte("cobra.Command")) {
			return true
		}
		visit(files.Position(node.Pos()).String(), string(text))
		return false
	})
}
