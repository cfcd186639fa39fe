package importer_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The versions of a program stay as they are when it adds our modules: Go takes the highest version that any module states.
func TestNothingMoves(t *testing.T) {
	p := newProxy(t)
	for name, c := range map[string]struct {
		goVersion string
		requires  []string
		imports   []string // before
		adds      []string // packages of ours
		without   []string // beginnings of modules that the program must not be given
	}{
		"client-go 0.36 and gRPC": {
			goVersion: "1.26.0",
			requires:  []string{"k8s.io/client-go v0.36.3", "google.golang.org/grpc v1.80.0"},
			imports:   []string{"k8s.io/client-go/rest", "google.golang.org/grpc/codes"},
			adds:      []string{"api/authentication/v1alpha1", "execcredential", "execcredential/clientgo"},
		},
		"client-go 0.35, the oldest": {
			goVersion: "1.25.0",
			requires:  []string{"k8s.io/client-go v0.35.0"},
			imports:   []string{"k8s.io/client-go/rest"},
			adds:      []string{"execcredential", "execcredential/exectest", "execcredential/clientgo"},
		},
		"apimachinery 0.25": {
			goVersion: "1.21.0",
			requires:  []string{"k8s.io/apimachinery v0.25.0"},
			imports:   []string{"k8s.io/apimachinery/pkg/runtime"},
			adds:      []string{"api/authentication/v1alpha1", "api/identity/v1alpha1", "api/windows/v1"},
			without:   []string{"k8s.io/client-go", "google.golang.org/grpc"},
		},
		"no library": {
			goVersion: "1.25.0",
			imports:   []string{"fmt"},
			adds:      []string{"execcredential"},
			without:   []string{"k8s.io/", "google.golang.org/", "github.com/spf13/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			goMod := "module importer.example\n\ngo " + c.goVersion + "\n"
			for _, require := range c.requires {
				goMod += "\nrequire " + require + "\n"
			}
			write(t, filepath.Join(dir, "go.mod"), goMod)
			write(t, filepath.Join(dir, "before.go"), source(c.imports))
			command(t, dir, p.env, "go", "get", ".")
			before := versions(t, dir, p.env)
			get, packages, added := []string{"get", "."}, []string{"build"}, []string{}
			for _, modulePath := range modules {
				for _, add := range c.adds {
					if folder := moduleOf(t, add); modules[folder] == modulePath {
						get = append(get, modulePath+"@"+p.version)
						break
					}
				}
			}
			for _, add := range c.adds {
				packages, added = append(packages, module+"/"+add), append(added, module+"/"+add)
			}
			write(t, filepath.Join(dir, "added.go"), source(added))
			command(t, dir, p.env, "go", get...)
			command(t, dir, p.env, "go", packages...)
			after := versions(t, dir, p.env)
			for path, version := range before {
				if after[path] != version {
					t.Errorf("%s moved from %s to %s", path, version, after[path])
				}
			}
			if len(before) <= 3 && len(c.requires) > 0 {
				t.Fatalf("the program is built of %v alone", before)
			}
			for path := range after {
				for _, not := range c.without {
					if strings.HasPrefix(path, not) {
						t.Errorf("the program was given %s", path)
					}
				}
			}
		})
	}
}

// A release has no replace in any go.mod, without which go install refuses it.
func TestInstall(t *testing.T) {
	p := newProxy(t)
	bin := t.TempDir()
	command(t, bin, append(p.env, "GOBIN="+bin), "go", "install", module+"/cmd/credence-credential@"+p.version)
	if out := command(t, bin, nil, "go", "version", "-m", filepath.Join(bin, "credence-credential")); !strings.Contains(out, "mod\t"+module+"\t"+p.version) {
		t.Errorf("the program is not made of the release:\n%s", out)
	}
}

func source(imports []string) string {
	out := "package importer\n"
	for _, path := range imports {
		out += fmt.Sprintf("\nimport _ %q\n", path)
	}
	return out
}

// versions are those of the language and of the modules that the program is built of.
func versions(t *testing.T, dir string, env []string) map[string]string {
	t.Helper()
	list := map[string]string{"go": command(t, dir, env, "go", "list", "-m", "-f", "{{.GoVersion}}")}
	for line := range strings.Lines(command(t, dir, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", ".")) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		list[path] = version
	}
	return list
}
