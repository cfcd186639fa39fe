package delivery

import (
	"container/heap"
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
	"github.com/credence-id/credence/internal/delivery/secrets"
)

// agenda is a queue of Secrets by the time at which they are looked at.
type agenda struct {
	at  map[types.NamespacedName]time.Time
	all []item
}

type item struct {
	key types.NamespacedName
	at  time.Time
}

func (a *agenda) Len() int           { return len(a.all) }
func (a *agenda) Less(i, j int) bool { return a.all[i].at.Before(a.all[j].at) }
func (a *agenda) Swap(i, j int)      { a.all[i], a.all[j] = a.all[j], a.all[i] }
func (a *agenda) Push(x any)         { a.all = append(a.all, x.(item)) }
func (a *agenda) Pop() any {
	last := a.all[len(a.all)-1]
	a.all = a.all[:len(a.all)-1]
	return last
}

// add is what the queue of the controller does: the earliest wins.
func (a *agenda) add(key types.NamespacedName, at time.Time) {
	if before, ok := a.at[key]; ok && !at.Before(before) {
		return
	}
	a.at[key] = at
	heap.Push(a, item{key, at})
}

// An hour without the identity cluster: few questions meanwhile, and all that is due within two minutes after, spread out.
func TestAnHourWithoutTheIdentityCluster(t *testing.T) {
	const total = 400
	w := newWorld(t)
	w.addIdentity("ns", "banana", "u1")
	random := rand.New(rand.NewPCG(1, 2))
	w.requestor.Random, w.requestor.Outage.Random = random.Float64, random.Float64
	a := &agenda{at: map[types.NamespacedName]time.Time{}}
	w.requestor.Outage.Add = func(key types.NamespacedName, after time.Duration) { a.add(key, w.clock.Now().Add(after)) }
	for i := range total {
		secret := labelled("ns", fmt.Sprintf("s%d", i), "banana")
		if err := w.client.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		a.add(types.NamespacedName{Namespace: "ns", Name: secret.Name}, start0)
	}
	var looks, asked int
	run := func(until time.Time) {
		for a.Len() > 0 && !a.all[0].at.After(until) {
			next := heap.Pop(a).(item)
			if current, ok := a.at[next.key]; !ok || !current.Equal(next.at) {
				continue // an earlier look has taken its place
			}
			delete(a.at, next.key)
			w.clock.SetTime(next.at)
			looks++
			if after := w.look(next.key.String()); after > 0 {
				a.add(next.key, w.clock.Now().Add(after))
			}
		}
		w.clock.SetTime(until)
	}
	run(start0.Add(time.Second))
	if len(w.tokens) != total {
		t.Fatalf("%d tokens were written at first, want %d", len(w.tokens), total)
	}
	failures := func() int {
		return int(counter(t, w.recorder, "credence_agent_failures_total", "unreachable"))
	}

	// Down for as long as all need, and longer: every token is due by then, and none has expired in the first 20 minutes.
	w.down = errors.New("connection refused")
	looks = 0
	run(start0.Add(55 * time.Minute))
	for i := range total {
		if secrets.Stored(w.secret(fmt.Sprintf("ns/s%d", i))) == nil {
			t.Fatal("a token is gone")
		}
	}
	run(start0.Add(97 * time.Minute))
	asked = failures()
	if asked > 400 || asked < 100 {
		t.Errorf("the identity cluster got %d requests in about an hour of silence, want a few a minute", asked)
	}
	if looks > total+3*asked {
		t.Errorf("Secrets were looked at %d times meanwhile: a hot loop", looks)
	}

	w.down = nil
	w.tokens = nil
	var busiest int
	for second := range 120 {
		before := len(w.tokens)
		run(start0.Add(97*time.Minute + time.Duration(second+1)*time.Second))
		busiest = max(busiest, len(w.tokens)-before)
	}
	if len(w.tokens) != total {
		t.Errorf("%d tokens were written within two minutes, want %d", len(w.tokens), total)
	}
	if busiest > total/3 {
		t.Errorf("%d tokens within one second, want them spread out", busiest)
	}
}

// One identity that always fails must not keep the others waiting.
func TestOneThatAlwaysFailsDoesNotHoldUpTheOthers(t *testing.T) {
	w := newWorld(t, labelled("ns", "bad", "bad"), labelled("ns", "good", "good"))
	queue := map[string]time.Time{}
	w.requestor.Outage.Add = func(key types.NamespacedName, after time.Duration) { queue[key.String()] = w.clock.Now().Add(after) }
	w.addIdentity("ns", "good", "u1")
	w.down = errors.New("gateway timeout")
	w.look("ns/bad")
	w.look("ns/good")
	// From now on the bad one alone gets no answer: its identity is not in the cache.
	for range 50 {
		if len(w.tokens) > 0 {
			return
		}
		w.pass(time.Second)
		for key, at := range queue {
			if !at.After(w.clock.Now()) {
				delete(queue, key)
				down := w.down
				if key == "ns/good" {
					w.down = nil
				}
				w.look(key)
				w.down = down
			}
		}
	}
	t.Error("the good one got no token within 50 seconds")
}

// A Secret that could not read its identity, and then finds that its token is fresh, makes no request: others must not wait
// for its answer.
func TestAnOutageEndsWhenWhoWaitedNeedsNothing(t *testing.T) {
	w := newWorld(t, labelled("ns", "fresh", "banana"), labelled("ns", "new", "banana"))
	wi := w.addIdentity("ns", "banana", "u1")
	w.look("ns/fresh")
	delete(w.identities, "ns/banana")
	w.down = errors.New("no route to host")
	w.look("ns/fresh")
	if since, _ := w.requestor.Outage.Lasts(); since.IsZero() {
		t.Fatal("no outage was noticed")
	}
	w.down, w.identities["ns/banana"] = nil, wi
	w.pass(time.Minute)
	w.look("ns/fresh")
	w.look("ns/new")
	if since, waiting := w.requestor.Outage.Lasts(); !since.IsZero() || waiting != 0 || len(w.tokens) != 2 {
		t.Errorf("outage since %s, %d waiting, %d tokens: the new Secret must not wait", since, waiting, len(w.tokens))
	}
}

// While an algorithm has no key that may sign, tokens with another are issued.
func TestNoSigningKeyIsNoOutage(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.down = &apierrors.StatusError{ErrStatus: metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: v1alpha1.CauseNoSigningKey}}}}}
	if again := w.look("ns/s"); again <= 0 {
		t.Error("it is not tried again")
	}
	if since, _ := w.requestor.Outage.Lasts(); !since.IsZero() {
		t.Error("taken for an outage of the identity cluster")
	}
	if n := counter(t, w.recorder, "credence_agent_failures_total", "no_signing_key"); n != 1 {
		t.Errorf("%g failures for want of a key, want 1", n)
	}
}

// Secrets with nothing to request when their turn comes pass it on: the others must not wait behind all of them.
func TestTurnsAreNotWasted(t *testing.T) {
	for name, back := range map[string]func(*world, *v1alpha1.WorkloadIdentity){
		"their identity is gone": func(*world, *v1alpha1.WorkloadIdentity) {},
		"their tokens are fresh": func(w *world, wi *v1alpha1.WorkloadIdentity) { w.identities["ns/many"] = wi },
	} {
		t.Run(name, func(t *testing.T) {
			const others = 50
			w := newWorld(t, labelled("ns", "good", "good"))
			queue := map[string]time.Time{}
			w.requestor.Outage.Add = func(key types.NamespacedName, after time.Duration) {
				if at, ok := queue[key.String()]; !ok || w.clock.Now().Add(after).Before(at) {
					queue[key.String()] = w.clock.Now().Add(after)
				}
			}
			w.addIdentity("ns", "good", "u1")
			many := w.addIdentity("ns", "many", "u2")
			var keys []string
			for i := range others {
				if err := w.client.Create(t.Context(), labelled("ns", fmt.Sprintf("s%d", i), "many")); err != nil {
					t.Fatal(err)
				}
				keys = append(keys, fmt.Sprintf("ns/s%d", i))
				w.look(keys[len(keys)-1])
			}
			// Its token expires after all others.
			w.pass(time.Minute)
			w.look("ns/good")
			w.edit("ns/good", func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken })
			delete(w.identities, "ns/many")
			w.down = errors.New("connection refused")
			for _, key := range append(keys, "ns/good") {
				w.look(key)
			}
			back(w, many)
			w.down, w.tokens = nil, nil
			for range 120 {
				w.pass(time.Second)
				for again := true; again; {
					again = false
					for key, at := range queue {
						if !at.After(w.clock.Now()) {
							delete(queue, key)
							w.look(key)
							again = true
						}
					}
				}
			}
			if len(w.tokens) == 0 {
				since, waiting := w.requestor.Outage.Lasts()
				t.Errorf("no token two minutes after the cluster is back: an outage since %s, %d waiting", since, waiting)
			}
		})
	}
}
