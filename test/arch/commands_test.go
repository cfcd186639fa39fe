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
	"strings"
	"testing"
)

// changing matches commands that need more rights than the reader of a refusal may have.
var changing = regexp.MustCompile(`kubectl (annotate|apply|create|delete|edit|label|patch)|credence keys (acknowledge|initialize|revoke|rotate)`)

// named matches the words by which a message names the users who may run its command.
var named = regexp.MustCompile(`cluster admin|operator|person with ClusterRole|user who may|granters`)

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
	for _, place := range []string{"internal/admission", "internal/apiserver", "internal/app/apiserver", "internal/app/cli", "internal/cluster", "internal/delivery", "internal/doctor", "internal/explain", "internal/keyring"} {
		err := filepath.WalkDir("../../"+place, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
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
	message := regexp.MustCompile(`(?s)message(Expression)?: .*?\n *(reason:|- |---)`)
	for _, path := range manifests {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range message.FindAllString(string(content), -1) {
			check(path, text)
		}
	}
	if found < 10 {
		t.Errorf("%d messages suggest a command, which are fewer than there are", found)
	}
}

// eachMessage visits the source of calls, and of constants, whose texts may become messages. Texts of --help are not calls.
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
		switch node.(type) {
		case *ast.FuncDecl, *ast.File, *ast.BlockStmt, *ast.GenDecl, nil:
			return true
		case *ast.CallExpr, *ast.ValueSpec, *ast.ReturnStmt, *ast.AssignStmt:
		default:
			return true
		}
		text := source[files.Position(node.Pos()).Offset:files.Position(node.End()).Offset]
		if bytes.Contains(text, []byte("func(")) || bytes.Contains(text, []byte("cobra.Command")) || bytes.Contains(text, []byte("`")) {
			return true
		}
		visit(files.Position(node.Pos()).String(), string(text))
		return false
	})
}
