package generate_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/gmsa/generate"
	"github.com/credence-id/credence/internal/gmsa/lint"
	"github.com/credence-id/credence/test/testkit"
)

func facts() generate.Facts {
	return generate.Facts{
		Account: "WebApplication1", DNSName: "contoso.com", NetBIOSName: "CONTOSO",
		SID: "S-1-5-21-2126729477-2524075714-3094792973", GUID: "244818ae-87ca-4fcd-92ec-e79e5252348a",
	}
}

var update = flag.Bool("update", false, "write the files of testdata anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		testkit.Must(t, os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644))
	}
	want := testkit.Need(os.ReadFile(filepath.Join("testdata", name)))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestObject(t *testing.T) {
	whole := facts()
	whole.Forest = "corp.example"
	whole.Account += "$"
	whole.GUID = "{" + whole.GUID + "}"
	whole.Additional = []v1.GroupManagedServiceAccount{{Name: "second$", Scope: "emea.contoso.com"}}
	whole.Plugin = &generate.Plugin{GUID: "ccc2a336-d7f3-4818-a213-272b7924213e", Input: "ObjectId=1;SecretUri=https://vault.example/secrets/gmsa"}
	norway := facts()
	norway.NetBIOSName = "NO" // which YAML takes for false where it has no quotation marks
	for name, facts := range map[string]generate.Facts{"plain.yaml": facts(), "whole.yaml": whole, "norway.yaml": norway} {
		spec := testkit.Need(json.Marshal(generate.Spec(facts)))(t)
		for _, finding := range lint.Check(spec) {
			if finding.Rule != "forest-mismatch" { // the forest of whole.yaml has several trees
				t.Errorf("%s: %+v", name, finding)
			}
		}
		text := testkit.Need(generate.Object("webapp1-credspec", spec))(t)
		golden(t, name, text)
		var object v1.GMSACredentialSpec
		if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(generate.Spec(facts), *object.CredSpec); diff != "" {
			t.Errorf("%s is read as something else:\n%s", name, diff)
		}
	}
}

func TestAccess(t *testing.T) {
	documents := testkit.Need(generate.Access("webapp1-credspec", []generate.ServiceAccount{{"default", "webapp"}, {"team", "api"}, {"default", "other"}, {"default", "webapp"}}))(t)
	golden(t, "access.yaml", strings.Join(documents, "---\n"))
	var role rbacv1.ClusterRole
	testkit.Must(t, yaml.UnmarshalStrict([]byte(documents[0]), &role))
	want := []rbacv1.PolicyRule{{APIGroups: []string{"windows.k8s.io"}, Resources: []string{"gmsacredentialspecs"}, ResourceNames: []string{"webapp1-credspec"}, Verbs: []string{"use"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("the role gives something else (-want +got):\n%s", diff)
	}
	for _, text := range documents[1:] {
		var binding rbacv1.RoleBinding
		testkit.Expect(t, yaml.UnmarshalStrict([]byte(text), &binding))
	}
}

func TestObjectName(t *testing.T) {
	for account, want := range map[string]string{"WebApplication1": "webapplication1", "web_app$": "web-app", "_x_": "x", "a b": "a-b", "": ""} {
		if got := generate.ObjectName(account); got != want {
			t.Errorf("%q: %q, want %q", account, got, want)
		}
	}
}

func TestInitContainer(t *testing.T) {
	plain := generate.Container{Name: "verify-gmsa", Image: "mcr.microsoft.com/windows/servercore:ltsc2022"}
	whole := plain
	whole.Domain, whole.CredentialSpec = "contoso.com", "webapp1-credspec"
	for name, c := range map[string]generate.Container{"container.yaml": plain, "containerwhole.yaml": whole} {
		text := testkit.Need(generate.InitContainer(c))(t)
		golden(t, name, text)
		var containers []corev1.Container
		if err := yaml.UnmarshalStrict([]byte(text), &containers); err != nil || len(containers) != 1 {
			t.Fatalf("%s is not a list of one container: %v", name, err)
		}
		for _, argument := range containers[0].Command {
			if strings.ContainsAny(argument, `"'%^`) {
				t.Errorf("%s: cmd.exe reads %q otherwise than it is written", name, argument)
			}
		}
	}
	for _, bad := range []string{"contoso", "contoso.com & calc.exe", "a..b", "%PATH%.com", "contoso.com\n", `x".com`, strings.Repeat("a.", 130) + "com"} {
		c := plain
		if c.Domain = bad; !refused(c, generate.ErrDomain) {
			t.Errorf("domain %q is taken", bad)
		}
	}
	for _, bad := range []string{"", "a b", "a\nb: c", "-x"} {
		c := plain
		if c.Image = bad; !refused(c, generate.ErrImage) {
			t.Errorf("image %q is taken", bad)
		}
	}
}

func refused(c generate.Container, because error) bool {
	_, err := generate.InitContainer(c)
	return errors.Is(err, because)
}
