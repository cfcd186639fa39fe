package reports

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// every is how often an identity is reported; a second more than the server allows, for clocks that are not quite the same.
const every = 61 * time.Second

// maxMessage is how many characters of a failure are reported.
const maxMessage = 1024

// maxNames is how many Secrets are reported by name.
const maxNames = 5

// Secret is the state of a Secret that requests tokens of an identity.
type Secret struct {
	Identity types.NamespacedName
	UID      types.UID // of the identity
	// IssuedAt and Expiry are those of its token, or zero.
	IssuedAt, Expiry time.Time
	// Reason and Message are why it has no new token; empty: it has one.
	Reason, Message string
	// Elsewhere is set if Identity is the name of a CredentialsBinding, and the Secret is in another namespace or cluster.
	Elsewhere bool
}

// board has all Secrets, by identity or CredentialsBinding.
type board struct {
	repeat time.Duration // after which a report is sent again that has Secrets; 0: never

	mu         sync.Mutex
	secrets    map[types.NamespacedName]Secret
	identities map[types.NamespacedName]*tally
}

// tally is what is known, and was reported, of one identity.
type tally struct {
	uid     types.UID
	secrets map[types.NamespacedName]struct{}
	sent    *v1alpha1.DeliveryReportSpec // nil before the first
	sentUID types.UID
	sentAt  time.Time
	notTill time.Time
}

func newBoard(repeat time.Duration) *board {
	return &board{repeat: repeat, secrets: map[types.NamespacedName]Secret{}, identities: map[types.NamespacedName]*tally{}}
}

// set takes over what is known of a Secret, and returns the identities to be looked at.
func (b *board) set(key types.NamespacedName, secret Secret) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := []types.NamespacedName{secret.Identity}
	if before, ok := b.secrets[key]; ok && before.Identity != secret.Identity {
		delete(b.identities[before.Identity].secrets, key)
		changed = append(changed, before.Identity)
	}
	b.secrets[key] = secret
	t := b.identities[secret.Identity]
	if t == nil {
		t = &tally{secrets: map[types.NamespacedName]struct{}{}}
		b.identities[secret.Identity] = t
	}
	t.uid = secret.UID
	t.secrets[key] = struct{}{}
	return changed
}

// remove forgets a Secret, and returns the identities to be looked at.
func (b *board) remove(key types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, ok := b.secrets[key]
	if !ok {
		return nil
	}
	delete(b.secrets, key)
	delete(b.identities[before.Identity].secrets, key)
	return []types.NamespacedName{before.Identity}
}

// next returns the report of an identity that is due, or after how long it will be; neither if nothing has changed.
func (b *board) next(identity types.NamespacedName, now time.Time) (*v1alpha1.DeliveryReportSpec, types.UID, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.identities[identity]
	if t == nil {
		return nil, "", 0
	}
	report := b.report(t, now)
	if t.sent == nil && report.Secrets == 0 || t.sent != nil && t.sentUID == t.uid && equality.Semantic.DeepEqual(*t.sent, report) {
		if report.Secrets == 0 {
			delete(b.identities, identity)
		}
		if wait := t.sentAt.Add(b.repeat).Sub(now); b.repeat == 0 || report.Secrets == 0 || wait > 0 {
			return nil, "", max(wait, 0)
		}
	}
	if wait := t.notTill.Sub(now); wait > 0 {
		return nil, "", wait
	}
	return &report, t.uid, 0
}

// report is what is known of the Secrets of one identity: the failure is that of the first of them by name.
func (b *board) report(t *tally, now time.Time) v1alpha1.DeliveryReportSpec {
	report := v1alpha1.DeliveryReportSpec{Secrets: int32(len(t.secrets))}
	byName := func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	for _, key := range slices.SortedFunc(maps.Keys(t.secrets), byName) {
		secret := b.secrets[key]
		if expiry := metav1.NewTime(secret.Expiry); secret.Expiry.After(now) {
			report.Delivered++
			if report.Expires == nil || expiry.Before(report.Expires) {
				report.Expires = &expiry
			}
			if issued := metav1.NewTime(secret.IssuedAt); !issued.IsZero() && (report.Oldest == nil || issued.Before(report.Oldest)) {
				report.Oldest = &issued
			}
		}
		if secret.Elsewhere {
			if report.Elsewhere++; len(report.Names) < maxNames {
				report.Names = append(report.Names, key.String())
			}
		}
		if secret.Reason != "" && report.Failure == nil {
			report.Failure = &v1alpha1.DeliveryFailure{Reason: secret.Reason, Message: shortened("Secret " + key.String() + ": " + secret.Message)}
		}
	}
	return report
}

func shortened(message string) string {
	if runes := []rune(message); len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return message
}

// sent is what became of a report: it was taken, or not before a while.
func (b *board) sent(identity types.NamespacedName, uid types.UID, report *v1alpha1.DeliveryReportSpec, now, notTill time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.identities[identity]
	if t == nil {
		return
	}
	t.notTill = notTill
	if report == nil {
		return
	}
	t.sent, t.sentUID, t.sentAt = report, uid, now
	if len(t.secrets) == 0 {
		delete(b.identities, identity)
	}
}
