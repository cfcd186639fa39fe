package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// storePackage is the package of Kubernetes with the type Store.
const storePackage = "k8s.io/apiserver/pkg/registry/generic/registry"

// A complete store counts its objects in a goroutine: a change of the store is a data race. A change before it is complete is safe, and one of a
// copy that the same function makes.
func TestStoresAreNotChanged(t *testing.T) {
	fields := storeFields(t)
	names, err := filepath.Glob("../../internal/apiserver/registry/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../internal/apiserver/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files, read := token.NewFileSet(), 0
	for _, name := range slices.Concat(names, more) {
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if !hasStores(file) {
			continue
		}
		read++
		for _, change := range storeChanges(file, fields) {
			t.Errorf("%s: %s is changed, and its store may be complete. Set it in stored.Kind, or change a copy", files.Position(change.Pos()), types.ExprString(change))
		}
	}
	if read < 8 {
		t.Errorf("%d files with stores were read", read)
	}
}

// storeFields returns the names of the fields of a Store.
func storeFields(t *testing.T) map[string]bool {
	t.Helper()
	command := exec.Command("go", "list", "-f", "{{.Dir}}", storePackage)
	command.Dir = "../.."
	dir, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "store.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Store" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range field.Names {
				fields[name.Name] = true
			}
		}
		return false
	})
	for _, name := range []string{"Storage", "BeginCreate", "UpdateStrategy"} {
		if !fields[name] {
			t.Fatalf("%s has no Store with the field %s", storePackage, name)
		}
	}
	return fields
}

// hasStores reports whether a file imports Store, or the package that makes stores.
func hasStores(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		imported := strings.Trim(spec.Path.Value, `"`)
		return imported == storePackage || imported == module+"/internal/apiserver/registry/stored"
	})
}

// storeChanges returns the fields of stores that a file assigns to: neither before the store is complete nor of a copy.
func storeChanges(file *ast.File, fields map[string]bool) []ast.Expr {
	var changes []ast.Expr
	for _, declaration := range file.Decls {
		safe := safeUntil(declaration)
		ast.Inspect(declaration, func(node ast.Node) bool {
			assignment, ok := node.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for _, left := range assignment.Lhs {
				field, isSafe := false, false
				for of, ok := left.(*ast.SelectorExpr); ok; of, ok = of.X.(*ast.SelectorExpr) {
					field = field || fields[of.Sel.Name]
					isSafe = isSafe || left.Pos() < safe[types.ExprString(of.X)]
				}
				if field && !isSafe {
					changes = append(changes, left)
				}
			}
			return true
		})
	}
	return changes
}

// safeUntil returns the places up to which a function may change its variables: a store until it is complete, a copy and options everywhere.
func safeUntil(function ast.Decl) map[string]token.Pos {
	safe := map[string]token.Pos{}
	ast.Inspect(function, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				break
			}
			for i, right := range n.Rhs {
				if _, ok := right.(*ast.StarExpr); ok || calls(right, "GetRESTOptions") {
					safe[types.ExprString(n.Lhs[i])] = function.End()
				}
			}
		case *ast.CallExpr:
			if calls(n, "CompleteWithOptions") {
				safe[types.ExprString(n.Fun.(*ast.SelectorExpr).X)] = n.Pos()
			}
		}
		return true
	})
	return safe
}

// calls reports whether an expression is a call of a method.
func calls(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == name
}

func TestStoreChangesAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
func found() {
	store, err := stored.NewStore(kind)
	store.BeginCreate = r.identify
	store.Storage.Storage = wrapped{store.Storage.Storage}
	r.Store.Storage.Storage = nil
	s := &genericregistry.Store{}
	err = s.CompleteWithOptions(options)
	s.AfterCreate, err = nil, nil
	pointer := store
	pointer.Decorator = nil
}
func passed() {
	s := &genericregistry.Store{}
	s.AfterCreate = nil
	err = s.CompleteWithOptions(options)
	status, owner := *s, *s
	status.UpdateStrategy, owner.UpdateStrategy = nil, nil
	owner.Storage.Storage = nil
	r.marks = &status
	options, err := getter.GetRESTOptions(resource, example)
	options.Decorator = nil
}
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range storeChanges(file, map[string]bool{"AfterCreate": true, "BeginCreate": true, "Decorator": true, "Storage": true, "UpdateStrategy": true}) {
		got = append(got, types.ExprString(change))
	}
	want := []string{"store.BeginCreate", "store.Storage.Storage", "r.Store.Storage.Storage", "s.AfterCreate", "pointer.Decorator"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
