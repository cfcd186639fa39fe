package keys

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/discovery/comparison"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/wording"
)

// lookAgain is the pause between two looks at the published documents.
const lookAgain = time.Second

// withdrawal is where a revoked key is still published, as far as is known.
type withdrawal struct {
	still   string // where the key was seen; empty: nowhere
	unknown string // why it is not known; empty: it is
	gone    string // where it was looked for
	note    string // why relying parties' own place was not looked at; empty: it was
}

// awaitWithdrawal waits until the published documents do not have the revoked key any more. It reports an error if they
// still have it when the time is over (exit code 1), or if that is not known (3).
func (r *revoke) awaitWithdrawal(ctx context.Context, ring keyRing, client *http.Client, id string) error {
	stop := r.WaitingFor("the published documents to be without the key")
	defer stop()
	over := time.After(r.wait)
	for {
		found := look(ctx, ring, client, id)
		if found.still == "" && found.unknown == "" {
			stop()
			_, err := fmt.Fprintf(r.Out, "The key is published no longer: %s.\n", wording.OneLine(found.gone))
			if err == nil && found.note != "" {
				_, err = fmt.Fprintf(r.ErrOut, "warning: the documents were not looked at where relying parties fetch them: %s\n", wording.OneLine(found.note))
			}
			return err
		}
		select {
		case <-ctx.Done():
		case <-over:
		case <-time.After(lookAgain):
			continue
		}
		const hint = "relying parties accept its tokens until it is gone: see the condition Withdrawn in kubectl get keyring " + ringName + " -o yaml, and why credence-server apiserver could not publish in its log; at a public URL, purge the cache of the CDN or upload the documents again"
		if found.still != "" {
			return &command.Failure{Line: fmt.Sprintf("error: key %s is revoked, but still published in %s", id, wording.OneLine(found.still)), Hint: hint, Code: command.ExitRefused}
		}
		return &command.Failure{Line: fmt.Sprintf("error: key %s is revoked; whether it is still published is not known: %s", id, wording.OneLine(found.unknown)), Hint: hint, Code: command.ExitOutage}
	}
}

// look finds out where a key is published: what the key controller has seen, and what relying parties are shown.
func look(ctx context.Context, ring keyRing, client *http.Client, id string) withdrawal {
	object, err := ring.read(ctx)
	if err != nil {
		return withdrawal{unknown: strings.TrimPrefix(command.AsFailure(err).Line, "error: ")}
	}
	documents := object.Status.Documents
	switch {
	case !slices.ContainsFunc(object.Status.Revoked, func(k v1alpha1.RevokedKey) bool { return k.ID == id }) || documents == nil:
		return withdrawal{unknown: "the key controller has not looked at the published documents since"}
	case documents.Message != "":
		return withdrawal{unknown: documents.Message}
	case slices.Contains(documents.Keys, id):
		return withdrawal{still: documents.From}
	}
	found := withdrawal{gone: "it is not in " + documents.From}
	prober := comparison.Prober{Issuer: identity.Issuer(object.Status.Issuer), Client: client}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	shown, err := prober.Probe(ctx)
	switch {
	case err != nil:
		found.note = err.Error() + "; --ca-file names the authorities to trust for it"
	case slices.Contains(shown, identity.KeyID(id)):
		found.still = object.Status.Issuer
	default:
		found.gone += ", nor shown at " + object.Status.Issuer
	}
	return found
}
