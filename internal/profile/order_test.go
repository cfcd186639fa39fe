package profile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/test/testkit"
)

// The table of the documents is that of the code.
func TestOrdersAreDocumented(t *testing.T) {
	text := testkit.Need(os.ReadFile(filepath.Join("..", "..", "docs", "reference", "profiles.md")))(t)
	for _, o := range profile.Orders() {
		if line := fmt.Sprintf("| `%s.%s` | %s |\n", o.Of, o.Field, o.Words); !strings.Contains(string(text), line) {
			t.Errorf("docs/reference/profiles.md lacks %s", line)
		}
	}
}

// Each field that Kubernetes has, and adds one day, has an order.
func TestEveryFieldHasAnOrder(t *testing.T) {
	for of, c := range map[string]reflect.Type{"pod": reflect.TypeFor[corev1.PodSecurityContext](), "container": reflect.TypeFor[corev1.SecurityContext](), "windows": reflect.TypeFor[corev1.WindowsSecurityContextOptions]()} {
		for i := range c.NumField() {
			name, _, _ := strings.Cut(c.Field(i).Tag.Get("json"), ",")
			if name != "windowsOptions" && !slices.ContainsFunc(profile.Orders(), func(o profile.Order) bool { return o.Of == of && o.Field == name }) {
				t.Errorf("%s.%s has no order", of, name)
			}
		}
	}
}
