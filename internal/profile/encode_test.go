package profile_test

import (
	"encoding/json"
	"testing"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

// An empty list means none, and no list means any: a program that writes a profile must not turn the one into the other.
func TestEmptyListsAreEncoded(t *testing.T) {
	for _, want := range []string{
		`{"workloadIdentities":[],"secrets":{"allowed":[]}}`,
		`{"secrets":{}}`,
	} {
		var spec accounts.ServiceAccountProfileSpec
		testkit.Must(t, json.Unmarshal([]byte(want), &spec))
		if got, err := json.Marshal(spec.DeepCopy()); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v", want, got, err)
		}
	}
}
