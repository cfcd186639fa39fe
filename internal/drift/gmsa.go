package drift

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/credence-id/credence/internal/gmsa"
)

// Accounts decides about the GMSACredentialSpecs that a pod names: whether it would be admitted with them, and whether what was filled in is what
// they hold now. Contents are shown by a digest: a user who may read the pod may not be allowed to read the object.
func Accounts(p Pod) Finding {
	references := gmsa.References(p.Request.Pod, false)
	if len(references) == 0 {
		return Finding{State: Current}
	}
	asked := slices.Clone(references)
	for i := range asked {
		if r := &asked[i]; r.Name != "" {
			r.Contents = "" // filled in at admission
		}
	}
	denial := gmsa.Authorize(gmsa.Request{
		Namespace: p.Request.Namespace, ServiceAccount: p.Request.Pod.Spec.ServiceAccountName,
		References: gmsa.Filled(asked, p.Specs), Specs: p.Specs, Uses: p.Uses,
	}).Denial
	if denial != nil {
		return refused(denial)
	}
	for _, r := range references {
		if spec := p.Specs[r.Name]; gmsa.Same(r.Contents, spec.Contents) != nil {
			return Finding{State: Stale, Field: r.ContentsPath, Has: digest(r.Contents), Wants: digest(spec.Contents)}
		}
	}
	return Finding{State: Current}
}

func digest(contents string) string {
	if contents == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%.6x", sha256.Sum256([]byte(contents)))
}
