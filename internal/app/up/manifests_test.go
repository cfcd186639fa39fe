//go:build unix

package up

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/test/testkit"
)

// The policies for group managed service accounts do with refusals as the webhook does. The last argument counts, as with flags.
func TestActionsOfGMSAPolicies(t *testing.T) {
	i := installation{dir: home.Dir(t.TempDir())}
	testkit.Must(t, os.MkdirAll(filepath.Dir(i.authorityFile()), 0o700))
	testkit.Must(t, os.WriteFile(i.authorityFile(), nil, 0o600))
	const flag = "--gmsa-enforcement="
	for arguments, want := range map[string][]string{
		"":                                 {"Deny"},
		flag + "Enforce":                   {"Deny"},
		flag + "Warn":                      {"Warn", "Audit"},
		flag + "Audit":                     {"Audit"},
		flag + "Audit " + flag + "Enforce": {"Deny"},
	} {
		i.extra = map[string][]string{"webhook": strings.Fields(arguments)}
		loaded := testkit.Need(i.loadManifests(37))(t)
		found := 0
		for _, object := range loaded.objects {
			if object.GetKind() != "ValidatingAdmissionPolicyBinding" || !strings.HasPrefix(object.GetName(), "credence-gmsa") {
				continue
			}
			found++
			actions, _, err := unstructured.NestedStringSlice(object.Object, "spec", "validationActions")
			if diff := cmp.Diff(want, actions); diff != "" || err != nil {
				t.Errorf("%q: %v, actions of %s (-want +got):\n%s", arguments, err, object.GetName(), diff)
			}
		}
		if found == 0 {
			t.Errorf("%q: no policy for group managed service accounts is bound", arguments)
		}
	}
}
