package outage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/test/testkit"
)

// An hour without the identity cluster: few questions meanwhile, and all that is due within two minutes after, spread out.
func TestSecretsRecoverFromALongOutage(t *testing.T) {
	const total = 400
	w := deliverytest.New(t)
	w.AddIdentity("ns", "banana", "u1")
	random := rand.New(rand.NewPCG(1, 2))
	w.Secrets.Random, w.Secrets.Outage.Random = random.Float64, random.Float64
	a := &deliverytest.Agenda{}
	w.Follow(a)
	for i := range total {
		secret := deliverytest.LabeledSecret("ns", fmt.Sprintf("s%d", i), "banana")
		testkit.Must(t, w.Client.Create(t.Context(), secret))
		a.Add(types.NamespacedName{Namespace: "ns", Name: secret.Name}, deliverytest.Start)
	}
	w.Drive(a, deliverytest.Start.Add(time.Second))
	if len(w.Tokens) != total {
		t.Fatalf("%d tokens were written at first, want %d", len(w.Tokens), total)
	}

	// Down for as long as all need, and longer: every token is due by then, and none has expired in the first 20 minutes.
	w.Down = errors.New("connection refused")
	looks := w.Drive(a, deliverytest.Start.Add(55*time.Minute))
	for i := range total {
		if secrets.Stored(w.Secret(fmt.Sprintf("ns/s%d", i))) == nil {
			t.Fatal("a token is gone")
		}
	}
	looks += w.Drive(a, deliverytest.Start.Add(97*time.Minute))
	asked := int(w.Metric("credence_agent_failures_total", "unreachable"))
	if asked > 400 || asked < 100 {
		t.Errorf("the identity cluster got %d requests in about an hour of silence, want a few a minute", asked)
	}
	if looks > total+3*asked {
		t.Errorf("Secrets were looked at %d times meanwhile: a hot loop", looks)
	}

	w.Down = nil
	w.Tokens = nil
	var busiest int
	for second := range 120 {
		before := len(w.Tokens)
		w.Drive(a, deliverytest.Start.Add(97*time.Minute+time.Duration(second+1)*time.Second))
		busiest = max(busiest, len(w.Tokens)-before)
	}
	if len(w.Tokens) != total {
		t.Errorf("%d tokens were written within two minutes, want %d", len(w.Tokens), total)
	}
	if busiest > total/3 {
		t.Errorf("%d tokens within one second, want them spread out", busiest)
	}
}

// One identity that always fails must not keep the others waiting.
func TestFailingSecretDoesNotDelayOthers(t *testing.T) {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "bad", "bad"), deliverytest.LabeledSecret("ns", "good", "good"))
	queue := map[string]time.Time{}
	w.Secrets.Outage.Add = func(key types.NamespacedName, after time.Duration) { queue[key.String()] = w.Clock.Now().Add(after) }
	w.AddIdentity("ns", "good", "u1")
	w.Down = errors.New("gateway timeout")
	w.Look("ns/bad")
	w.Look("ns/good")
	// From now on the bad one alone gets no answer: its identity is not in the cache.
	for range 50 {
		if len(w.Tokens) > 0 {
			return
		}
		w.Pass(time.Second)
		for key, at := range queue {
			if !at.After(w.Clock.Now()) {
				delete(queue, key)
				down := w.Down
				if key == "ns/good" {
					w.Down = nil
				}
				w.Look(key)
				w.Down = down
			}
		}
	}
	t.Error("the good one got no token within 50 seconds")
}

// A Secret that could not read its identity, and then finds that its token is fresh, makes no request: others must not wait
// for its answer.
func TestOutageEndsWithoutARequest(t *testing.T) {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "fresh", "banana"), deliverytest.LabeledSecret("ns", "new", "banana"))
	wi := w.AddIdentity("ns", "banana", "u1")
	w.Look("ns/fresh")
	delete(w.Identities, "ns/banana")
	w.Down = errors.New("no route to host")
	w.Look("ns/fresh")
	if since, _ := w.Secrets.Outage.Lasts(); since.IsZero() {
		t.Fatal("no outage was noticed")
	}
	w.Down, w.Identities["ns/banana"] = nil, wi
	w.Pass(time.Minute)
	w.Look("ns/fresh")
	w.Look("ns/new")
	if since, waiting := w.Secrets.Outage.Lasts(); !since.IsZero() || waiting != 0 || len(w.Tokens) != 2 {
		t.Errorf("outage since %s, %d waiting, %d tokens: the new Secret must not wait", since, waiting, len(w.Tokens))
	}
}

// While an algorithm has no key that may sign, tokens with another are issued.
func TestNoSigningKeyIsNoOutage(t *testing.T) {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "s", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.Down = &apierrors.StatusError{ErrStatus: metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: v1alpha1.CauseNoSigningKey}}}}}
	if again := w.Look("ns/s"); again <= 0 {
		t.Error("it is not tried again")
	}
	if since, _ := w.Secrets.Outage.Lasts(); !since.IsZero() {
		t.Error("taken for an outage of the identity cluster")
	}
	if n := w.Metric("credence_agent_failures_total", "no_signing_key"); n != 1 {
		t.Errorf("%g failures for want of a key, want 1", n)
	}
}

// Secrets with nothing to request when their turn comes pass it on: the others must not wait behind all of them.
func TestUnusedTurnsArePassedOn(t *testing.T) {
	for name, back := range map[string]func(*deliverytest.World, *v1alpha1.WorkloadIdentity){
		"their identity is gone": func(*deliverytest.World, *v1alpha1.WorkloadIdentity) {},
		"their tokens are fresh": func(w *deliverytest.World, wi *v1alpha1.WorkloadIdentity) { w.Identities["ns/many"] = wi },
	} {
		t.Run(name, func(t *testing.T) {
			const others = 50
			w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "good", "good"))
			queue := map[string]time.Time{}
			w.Secrets.Outage.Add = func(key types.NamespacedName, after time.Duration) {
				if at, ok := queue[key.String()]; !ok || w.Clock.Now().Add(after).Before(at) {
					queue[key.String()] = w.Clock.Now().Add(after)
				}
			}
			w.AddIdentity("ns", "good", "u1")
			many := w.AddIdentity("ns", "many", "u2")
			var keys []string
			for i := range others {
				testkit.Must(t, w.Client.Create(t.Context(), deliverytest.LabeledSecret("ns", fmt.Sprintf("s%d", i), "many")))
				keys = append(keys, fmt.Sprintf("ns/s%d", i))
				w.Look(keys[len(keys)-1])
			}
			// Its token expires after all others.
			w.Pass(time.Minute)
			w.Look("ns/good")
			w.Edit("ns/good", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken })
			delete(w.Identities, "ns/many")
			w.Down = errors.New("connection refused")
			for _, key := range append(keys, "ns/good") {
				w.Look(key)
			}
			back(w, many)
			w.Down, w.Tokens = nil, nil
			for range 120 {
				w.Pass(time.Second)
				for again := true; again; {
					again = false
					for key, at := range queue {
						if !at.After(w.Clock.Now()) {
							delete(queue, key)
							w.Look(key)
							again = true
						}
					}
				}
			}
			if len(w.Tokens) == 0 {
				since, waiting := w.Secrets.Outage.Lasts()
				t.Errorf("no token two minutes after the cluster is back: an outage since %s, %d waiting", since, waiting)
			}
		})
	}
}
