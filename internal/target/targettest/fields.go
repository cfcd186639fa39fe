package targettest

import (
	"strings"
	"testing"
)

// Fields tries values of single fields of the first configuration of a suite: by field and value, whether it is valid. An
// error names its field, and describes valid values.
func Fields(t *testing.T, suite Suite, fields map[string]map[string]bool) {
	t.Helper()
	members := object(t, suite.Accepted[0])
	for name, values := range fields {
		if _, ok := members[name]; !ok {
			t.Errorf("the first configuration has no %s", name)
		}
		for value, right := range values {
			_, errs := suite.Adapter.Parse([]byte(with(t, members, name, string(marshal(t, value)))), path())
			switch {
			case right && len(errs) > 0:
				t.Errorf("%s %q: %v", name, value, errs)
			case !right && (len(errs) != 1 || errs[0].Field != path().Child(name).String() || !strings.Contains(errs[0].Detail, "must be")):
				t.Errorf("%s %q: %v, want one error of this field that describes valid values", name, value, errs)
			}
		}
	}
}
