package secrets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/test/testkit"
)

// steady is what an accelerated clock has shown of Secrets that were all filled in the same second.
type steady struct {
	perMinute []int   // renewals, without the first fill
	average   float64 // of them, by the middle of the window
	due       int     // how often the time of a Secret had come
	renewed   int     // how many tokens were requested then
	tokens    int     // how many were requested in all
	writes    int     // how often Secrets were written
}

// runSteady runs secrets.Controller over lifetimes of one hour: each Secret is reconciled when it is due, and once more after each
// write, as by the watch.
func runSteady(t testing.TB, secrets, lifetimes int) steady {
	var objects []client.Object
	for i := range secrets {
		objects = append(objects, deliverytest.LabeledSecret("orchard", fmt.Sprintf("s%05d", i), "one"))
	}
	w := deliverytest.New(t)
	stored := newTable(objects)
	w.Secrets.Client = stored
	w.AddIdentity("orchard", "one", "u1")
	w.Secrets.Random = rand.New(rand.NewPCG(5, 6)).Float64
	var line deliverytest.Agenda
	for _, object := range objects {
		line.Add(client.ObjectKeyFromObject(object), deliverytest.Start)
	}
	s := steady{perMinute: make([]int, lifetimes*60), average: float64(secrets) / (0.7 * deliverytest.Lifetime.Minutes())}
	last := deliverytest.Start.Add(time.Duration(lifetimes)*deliverytest.Lifetime - 1)
	for key, at, ok := line.Next(last); ok; key, at, ok = line.Next(last) {
		w.Clock.SetTime(at)
		asked, expiry := len(w.Tokens), w.Secrets.Ledger.Get(key).Expiry
		wait := w.Look(key.String())
		switch written := len(w.Tokens) - asked; {
		case at.Equal(deliverytest.Start):
			if written != 1 {
				t.Fatalf("%s was filled with %d tokens", key, written)
			}
		case written != 1 || !at.Before(expiry):
			t.Fatalf("%s was reconciled when it was due, %s before its token expired, and got %d new tokens", key, expiry.Sub(at), written)
		default:
			s.perMinute[at.Sub(deliverytest.Start)/time.Minute]++
			s.due++
		}
		if again := w.Look(key.String()); again != wait || len(w.Tokens) != asked+1 {
			t.Fatalf("%s was renewed twice, or is due at another time: %s, then %s", key, wait, again)
		}
		line.Add(key, at.Add(wait))
	}
	s.renewed, s.tokens = len(w.Tokens)-secrets, len(w.Tokens)
	for _, secret := range stored.stored {
		version := testkit.Need(strconv.Atoi(secret.ResourceVersion))(t)
		s.writes += version - 1
	}
	return s
}

// table is an API of Secrets that is fast enough for a hundred thousand writes.
type table struct {
	client.Client // nothing else is called
	stored        map[types.NamespacedName]*corev1.Secret
}

func newTable(objects []client.Object) table {
	t := table{stored: map[types.NamespacedName]*corev1.Secret{}}
	for _, object := range objects {
		object.SetResourceVersion("1")
		t.stored[client.ObjectKeyFromObject(object)] = object.(*corev1.Secret)
	}
	return t
}

func (t table) Get(_ context.Context, key types.NamespacedName, into client.Object, _ ...client.GetOption) error {
	t.stored[key].DeepCopyInto(into.(*corev1.Secret))
	return nil
}

// Patch replaces the whole object: there are no other writers, which the patch must assume.
func (t table) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	content, err := patch.Data(object)
	if err != nil {
		return err
	}
	var based metav1.PartialObjectMetadata
	if err := json.Unmarshal(content, &based); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	version, err := strconv.Atoi(t.stored[key].ResourceVersion)
	if err != nil || based.ResourceVersion != strconv.Itoa(version) {
		return apierrors.NewConflict(corev1.Resource("secrets"), key.Name, err)
	}
	object.SetResourceVersion(strconv.Itoa(version + 1))
	t.stored[key] = object.DeepCopyObject().(*corev1.Secret)
	return nil
}

// Each Secret is renewed at its own time, once, in every window of every deliverytest.Lifetime.
func TestSecretsAreRenewedOncePerWindow(t *testing.T) {
	const secrets, lifetimes = 100, 4
	s := runSteady(t, secrets, lifetimes)
	if least, most := secrets*lifetimes, secrets*lifetimes*10/6; s.renewed != s.due || s.renewed < least || s.renewed > most {
		t.Errorf("%d tokens for %d Secrets in %d lifetimes, which were due %d times; want %d to %d", s.renewed, secrets, lifetimes, s.due, least, most)
	}
}

// BenchmarkSteady is ten thousand Secrets, filled in the same second, over four lifetimes: the busiest minute of the first two,
// and of the others, in parts of the average. It fails if one is renewed twice, or too late.
func BenchmarkSteady(b *testing.B) {
	const secrets, lifetimes = 10000, 4
	for b.Loop() {
		s := runSteady(b, secrets, lifetimes)
		b.ReportMetric(s.average, "renewals/min")
		b.ReportMetric(float64(slices.Max(s.perMinute[:2*60])), "busiest-of-first")
		b.ReportMetric(float64(slices.Max(s.perMinute[2*60:])), "busiest-of-later")
		b.ReportMetric(float64(s.due), "due")
		b.ReportMetric(float64(s.renewed), "renewed")
		b.ReportMetric(float64(s.tokens), "tokens")
		b.ReportMetric(float64(s.writes), "writes")
	}
}
