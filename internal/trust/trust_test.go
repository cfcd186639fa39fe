package trust

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHCLHasNoTemplate(t *testing.T) {
	for _, audience := range append([]string{`${file("/etc/passwd")}`, `%{ if true }`, `$${x}`, `\\`, `"`, "\t", `ünïcode`, `$`, `%`}, "$${", "%%{x", "$$$${") {
		quoted := HCL(audience)
		if strings.Contains(quoted, "${") || strings.Contains(quoted, "%{") {
			t.Errorf("%q is written as %s, with a template", audience, quoted)
		}
		// The remaining escapes of HCL are those of JSON.
		var back string
		if err := json.Unmarshal([]byte(quoted), &back); err != nil || back != audience {
			t.Errorf("%q is written as %s, and read as %q (%v)", audience, quoted, back, err)
		}
	}
}

func TestNamesAreApart(t *testing.T) {
	seen := map[string]string{}
	for _, name := range [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"a", "b.c"}, {"a", "b"}, {"a-b", "c.d"}} {
		i := Identity{Namespace: name[0], Name: name[1]}
		for _, made := range []string{i.Label(), i.ResourceName()} {
			if other, taken := seen[made]; taken {
				t.Errorf("%v and %s are both called %s", name, other, made)
			}
			seen[made] = strings.Join(name[:], "/")
		}
	}
}

func TestReach(t *testing.T) {
	for issuer, want := range map[string]string{
		"https://127.0.0.1:6443/x": "from the internet", "https://localhost": "from the internet", "https://10.1.2.3": "from the internet",
		"https://discovery.credence-system.svc": "from the internet", "https://id.example:8443": "names port 8443", "https://id.example": "",
	} {
		if got := Reach(issuer); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", issuer, got, want)
		}
	}
}
