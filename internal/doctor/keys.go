package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
)

const (
	// maxKeys is below what the strictest relying party is known to take, which is 10.
	maxKeys = 8
	// lateness is how late a due change may be before it is reported.
	lateness = 5 * time.Minute
)

// checkKeys sees whether every algorithm has a key that signs and a spare, and whether they rotate.
func (d *Examination) checkKeys(ctx context.Context, found *Diagnosis, from *cluster.API) *v1alpha1.KeyRing {
	var ring v1alpha1.KeyRing
	err := from.Get(ctx, &ring, cluster.Place{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Resource: "keyrings", Name: v1alpha1.WorkloadIdentities})
	if skipped(found, "keys", "get keyrings", err) {
		return nil
	}
	if err != nil {
		found.add("keys", Fail, cluster.SeeAPIService(v1alpha1.SchemeGroupVersion), "read the ring of keys: %v", err)
		return nil
	}
	if len(ring.Status.Keys) == 0 {
		found.add("keys", Fail, "see whether credence-server controller runs", "the KeyRing has no keys in its status yet")
		return &ring
	}
	before := len(found.Findings)
	if d.judgeKeys(found, &ring); len(found.Findings) == before {
		found.pass("keys", "%s; each algorithm has one that signs, and a spare", wording.Plural(len(ring.Status.Keys), "is published", "are published"))
	}
	return &ring
}

func (d *Examination) judgeKeys(found *Diagnosis, ring *v1alpha1.KeyRing) {
	states := map[string][]string{}
	for _, key := range ring.Status.Keys {
		states[key.Algorithm] = append(states[key.Algorithm], key.State)
	}
	for _, algorithm := range slices.Sorted(maps.Keys(states)) {
		for _, want := range []keys.State{keys.Active, keys.Spare} {
			if !slices.Contains(states[algorithm], string(want)) {
				verdict := Fail
				if want == keys.Spare {
					verdict = Warn
				}
				found.add("keys", verdict, "see what becomes of them: credence keys list", "no %s key is %s", algorithm, strings.ToLower(string(want)))
			}
		}
	}
	if n := len(ring.Status.Keys); n > maxKeys {
		found.add("keys", Warn, "see why retired keys are kept: credence keys list", "%d are published: relying parties with narrow limits take 10", n)
	}
	for _, condition := range ring.Status.Conditions {
		if condition.Status != metav1.ConditionTrue {
			found.add("keys", Fail, "see credence keys list", "%s is %s, %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	if next := ring.Status.NextChange; next != nil && d.Now().Sub(next.Time) > lateness {
		found.add("keys", Fail, "see whether credence-server controller runs, and its log", "a change of the keys was due %s", wording.Age(next, d.Now()))
	}
	for _, party := range ring.Status.RelyingParties {
		if len(party.MissingKeys) > 0 {
			found.add("keys", Warn, fmt.Sprintf("give it the keys; an operator of the keys (ClusterRole credence:keyrings:operator) then runs: credence keys acknowledge %s", party.Name), "relying party %s has not been given %s", party.Name, wording.Plural(len(party.MissingKeys), "key", "keys"))
		}
	}
}
