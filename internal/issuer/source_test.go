package issuer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

// signingCalls returns the places in a file where a private key is used for a signature: calls of crypto.Signer's Sign,
// which is known by its three arguments, and of the functions of crypto, ecdsa, ed25519 and rsa that sign.
func signingCalls(set *token.FileSet, file *ast.File) []string {
	functions := map[string]bool{
		"SignASN1": true, "SignPKCS1v15": true, "SignPSS": true, "SignMessage": true,
		"crypto.SignMessage": true, "ecdsa.Sign": true, "ed25519.Sign": true,
	}
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		qualified := callee.Sel.Name
		if receiver, ok := callee.X.(*ast.Ident); ok {
			qualified = receiver.Name + "." + qualified
		}
		if functions[callee.Sel.Name] || functions[qualified] || callee.Sel.Name == "Sign" && len(call.Args) == 3 {
			found = append(found, filepath.ToSlash(set.Position(call.Pos()).Filename))
		}
		return true
	})
	return found
}

// Private keys sign in two places: here, which only claims from Prepare reach, and for kube-apiserver, whose claims are
// checked there and whose ring is another one.
func TestTwoCallsReachAPrivateKey(t *testing.T) {
	set := token.NewFileSet()
	var found []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasSuffix(path, "test") {
			return fs.SkipDir // packages for tests alone
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found = append(found, signingCalls(set, file)...)
		return nil
	})
	testkit.Must(t, err)
	if diff := cmp.Diff([]string{"../externalsigner/service/signature.go", "../issuer/sign.go"}, found); diff != "" {
		t.Errorf("calls that sign, in internal/ (-want +got):\n%s\nsign only through issuer.Prepare and issuer.Sign", diff)
	}
}

func TestSigningCallsAreFound(t *testing.T) {
	sources := map[string]int{
		`key.Sign(rand.Reader, digest, crypto.SHA256)`:             1,
		`by.private.Sign(nil, digest[:], opts)`:                    1,
		`rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest)`:        1,
		`ecdsa.SignASN1(rand.Reader, key, digest)`:                 1,
		`ed25519.Sign(key, message)`:                               1,
		`crypto.SignMessage(key, nil, message, opts)`:              1,
		`func() { _, _ = ecdsa.Sign(rand.Reader, key, digest) }()`: 1,
		`issuer.Sign(ctx, prepared)`:                               0,
		`big.NewInt(1).Sign()`:                                     0,
		`use(Sign)`:                                                0,
	}
	for source, want := range sources {
		set := token.NewFileSet()
		file := testkit.Need(parser.ParseFile(set, "x.go", "package x\nfunc f() { "+source+" }", parser.SkipObjectResolution))(t)
		if got := len(signingCalls(set, file)); got != want {
			t.Errorf("%s: %d signing calls found, want %d", source, got, want)
		}
	}
}
