package keys

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
)

// revocation is that of one key.
type revocation struct {
	spec   v1alpha1.KeyRevocationSpec
	seen   *v1alpha1.KeyRing // before
	status v1alpha1.KeyRevocationStatus
	// cost is for how long valid tokens could be refused if refusals were accepted, where no key signs without.
	cost    []v1alpha1.Exposure
	command func(name string) string // what a user types to run another command on the same ring
	dryRun  bool
	// inFolder is set for a ring in a folder, whose issuer is not known.
	inFolder bool
}

// try finds out what would come of the revocation.
func (r *revocation) try(ctx context.Context, ring keyRing) error {
	var err error
	if r.status, err = ring.revoke(ctx, r.spec, true); err != nil {
		return r.refusal(err)
	}
	if r.status.ActiveKey != "" || r.spec.AcceptRefusals || !r.wasActive() {
		return nil
	}
	accepting := r.spec
	accepting.AcceptRefusals = true
	status, err := ring.revoke(ctx, accepting, true)
	if err != nil {
		return r.refusal(err)
	}
	r.cost = status.Refusals
	return nil
}

func (r *revocation) wasActive() bool {
	key, ok := keyOf(r.seen, r.spec.Key)
	return ok && key.State == string(keys.Active)
}

func (r *revocation) refusal(err error) *command.Failure {
	failed := command.AsFailure(err)
	switch refusedFor(err) {
	case keys.NoSuchKey:
		failed.Hint = fmt.Sprintf("see which keys there are: %s", r.command("list"))
	case keys.AlreadyDone:
		failed.Hint = fmt.Sprintf("see what became of it: %s", r.command("history"))
	}
	return failed
}

func (r *revocation) print(w io.Writer, now time.Time) error {
	verb := "is revoked"
	if r.dryRun {
		verb = "would be revoked"
	}
	rows := [][]string{
		{"key", fmt.Sprintf("%s (%s) %s", r.spec.Key, r.status.Algorithm, verb)},
		{"signs now", r.signer(now)},
		{"last expiry", wording.Instant(r.status.LastExpiry, now, "the key has signed nothing")},
	}
	if r.status.LastExpiry != nil {
		rows[2][1] += ", of what was signed here"
	}
	if err := screen.Table(w, rows...); err != nil {
		return err
	}
	if r.status.ActiveKey == "" && len(r.cost) > 0 {
		if err := r.printWayOut(w); err != nil {
			return err
		}
	}
	if !none(r.status.Refusals) {
		why := ""
		if r.status.ActiveKey == activeKey(r.seen, r.status.Algorithm) {
			why = ", and those of the revoked key are replaced by such ones"
		}
		if _, err := fmt.Fprintf(w, "Valid tokens of key %s can be refused%s:\n", wording.OneLine(r.status.ActiveKey), why); err != nil {
			return err
		}
		if err := printExposures(w, r.status.Refusals, refused); err != nil {
			return err
		}
	}
	if none(r.status.Accepted) {
		_, err := fmt.Fprintln(w, "No relying party accepts tokens of the revoked key.")
		return err
	}
	if _, err := fmt.Fprintln(w, "Tokens of the revoked key can still be accepted:"); err != nil {
		return err
	}
	if err := printExposures(w, r.status.Accepted, accepted); err != nil {
		return err
	}
	if r.inFolder {
		return nil
	}
	_, err := fmt.Fprintf(w, "Those that fetch the keys when they meet an unknown one (M0; M1 once the max-age is over) do so when they are shown a token of %s --audience AUDIENCE.\n", r.command("probe"))
	return err
}

// signer names the key that signs.
func (r *revocation) signer(now time.Time) string {
	switch {
	case r.status.ActiveKey == "":
		return "none: " + unsigned(r.status.NextKey, r.status.NextAt, now)
	case r.status.ActiveKey == activeKey(r.seen, r.status.Algorithm):
		return r.status.ActiveKey + ", as before"
	default:
		return r.status.ActiveKey + ", the former spare"
	}
}

// unsigned words what becomes of requests while no key of an algorithm signs.
func unsigned(nextKey string, nextAt *metav1.Time, now time.Time) string {
	until := "the published documents have shown a spare for long enough"
	if nextAt != nil {
		until = fmt.Sprintf("key %s may sign, %s", wording.OneLine(nextKey), wording.Instant(nextAt, now, ""))
	}
	return "requests for such tokens are answered 503 until " + until
}

// signAtOnce is the command by which a spare signs that relying parties may not know.
func signAtOnce(algorithm string) string {
	return "rotate --algorithm " + algorithm + " --now --accept-refusals"
}

// printWayOut prints what it would cost to let a spare sign that relying parties may not know.
func (r *revocation) printWayOut(w io.Writer) error {
	way := r.command(signAtOnce(r.status.Algorithm))
	if r.dryRun {
		way = "--accept-refusals"
	}
	if _, err := fmt.Fprintf(w, "By %s it signs at once; then its valid tokens can be refused:\n", way); err != nil {
		return err
	}
	return printExposures(w, r.cost, refused)
}
