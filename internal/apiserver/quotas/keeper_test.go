package quotas

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/test/testkit"
)

// Writes are refused with the limit and the numbers, and let through once there is room.
func TestAdmit(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": "10", "objects": "4", "memory": "100Gi"})
	w.limit("each", "Project", map[string]string{"cpu": "6"})
	w.bind("garden-a", "b", "all", "each")
	w.bind("garden-b", "b", "all", "each")
	w.bind("garden-a", "free")
	r := w.replica(t, options)
	requests := 0
	check := func(what string, object *unstructured.Unstructured, want string) {
		t.Helper()
		requests++
		if got := r.write(t, fmt.Sprint("r", requests), object); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: refused with %q, want %q", what, got, want)
		}
	}
	one := shoot("garden-a", "one", "b", "4")
	check("the first", one, "")
	check("too much for its project", shoot("garden-a", "two", "b", "3"), "Quota quotas/each, which CredentialsBinding garden-a/b lists: cpu: the object needs 3, others use 4, together 7 of 6")
	check("in another project", shoot("garden-b", "two", "b", "6"), "")
	check("too much for all", shoot("garden-a", "three", "b", "500m"), "Quota quotas/all, which CredentialsBinding garden-a/b lists: cpu: the object needs 500m, others use 10, together 10500m of 10")
	check("without a Quota", shoot("garden-a", "three", "free", "1000"), "")
	check("moved into it", shoot("garden-a", "three", "b", "1"), "together 11 of 10")
	check("growing", with(one, "cpu", "5"), "together 11 of 10")
	check("what does not grow", with(one, "note", "x"), "")
	check("shrinking", with(one, "cpu", "3"), "")
	check("into the room", shoot("garden-a", "four", "b", "1"), "")
	check("over two limits", with(shoot("garden-a", "five", "b", "1"), "memory", "98Gi"), "cpu: the object needs 1, others use 10, together 11 of 10; memory: the object needs 98Gi, others use 3Gi, together 101Gi of 100Gi")
	w.remove("garden-b/two")
	check("after a deletion", with(shoot("garden-a", "five", "b", "1"), "memory", "0"), "")
	check("one object too many", shoot("garden-b", "six", "b", "0"), "")
	check("and another", shoot("garden-b", "seven", "b", "0"), "objects: the object needs 1, others use 4, together 5 of 4")

	// Writes about which something is not known are refused.
	check("an invalid name of a binding", with(one, "binding", "A B"), "which CredentialsBindings Shoot garden-a/one refers to is not known, and so which Quotas limit it: spec.references[infrastructure].credentialsBindings of ContextKind shoots.core.gardener.cloud: ")
	check("an invalid amount", with(one, "cpu", "much"), `Quota quotas/all, which CredentialsBinding garden-a/b lists: what Shoot garden-a/one uses is not known: spec.usage of ContextKind shoots.core.gardener.cloud: cpu: "much" is not a quantity`)
	check("a negative one", with(one, "cpu", "-1"), "-1 is negative")
	w.limit("gpus", "Secret", map[string]string{"gpu": "1"})
	w.bind("garden-a", "gpus", "gpus")
	check("what usage does not return", shoot("garden-a", "gpu", "gpus", "1"), "it limits gpu, and spec.usage of ContextKind shoots.core.gardener.cloud does not return how much of it an object uses")
	w.bind("garden-a", "gone", "gone")
	check("a Quota that does not exist", shoot("garden-a", "gone", "gone", "1"), "Quota quotas/gone, which CredentialsBinding garden-a/gone lists: it does not exist")
	delete(w.quotas, "quotas/each")
	check("one that was deleted, without growth", with(one, "cpu", "3"), "")
	check("one that was deleted", with(one, "cpu", "4"), "Quota quotas/each, which CredentialsBinding garden-a/b lists: it does not exist")

	// So is growth by a binding that was deleted, or was never there.
	w.bind("garden-b", "lost", "all")
	lost := shoot("garden-b", "lost", "lost", "0")
	w.remove("garden-b/six")
	check("before its binding is deleted", lost, "")
	delete(w.bindings, "garden-b/lost")
	check("growing without the binding", with(lost, "cpu", "1"), "CredentialsBinding garden-b/lost, to which it refers, does not exist, so the Quotas that it lists are not known")
	check("what does not grow without the binding", with(lost, "note", "x"), "")
	check("new, with a binding that is not there", shoot("garden-b", "new", "none", "0"), "CredentialsBinding garden-b/none, to which it refers, does not exist")
	check("moved to one that is not there", with(lost, "binding", "none"), "CredentialsBinding garden-b/none, to which it refers, does not exist")

	w.away = errors.New("the API is away")
	if _, err := r.Admit(t.Context(), r.asked("away", shoot("garden-b", "seven", "b", "0"))); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("with objects that cannot be read: %v", err)
	}
	other := r.asked("version", one)
	other.Object.SetAPIVersion(shoots.Group + "/v1alpha1")
	if _, err := r.Admit(t.Context(), other); err == nil || !strings.Contains(err.Error(), "must have the object in core.gardener.cloud/v1beta1") {
		t.Errorf("in another version: %v", err)
	}
}

// A write that did not happen is released in time, or by another write of the object; a dry run reserves nothing.
func TestReleased(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "WorkloadIdentity", map[string]string{"cpu": "10"})
	w.quotas["quotas/all"].Spec.Scope.APIVersion = "authentication.gardener.cloud/v1alpha1"
	w.limit("later", "Project", map[string]string{"cpu": "1"})
	w.bind("garden-a", "b", "all")
	w.bind("garden-a", "both", "all", "later")
	r, other := w.replica(t, options), w.replica(t, options)
	big := shoot("garden-a", "big", "b", "8")
	dry := r.asked("dry", big)
	dry.DryRun = true
	for _, each := range []struct {
		what   string
		write  Write
		want   string
		stored bool
	}{
		{"a dry run", dry, "", false},
		{"a write that is not stored", r.asked("lost", big), "", false},
		{"the same again", r.asked("again", big), "", false},
		{"another, meanwhile", r.asked("small", shoot("garden-a", "small", "b", "3")), "others use 8, together 11 of 10", false},
		{"one that another Quota refuses", r.asked("both", shoot("garden-a", "small", "both", "2")), "Quota quotas/later", false},
		{"what that one had reserved", r.asked("rest", shoot("garden-a", "rest", "b", "2")), "", true},
	} {
		got, err := other.Admit(t.Context(), each.write)
		if err != nil || each.want == "" && got != "" || !strings.Contains(got, each.want) {
			t.Fatalf("%s: refused with %q, %v; want %q", each.what, got, err, each.want)
		}
		if each.stored && !w.persist(each.write) {
			t.Fatalf("%s is not stored", each.what)
		}
	}
	r.look()
	w.clock.SetTime(noon.Add(reserved))
	testkit.Must(t, r.sweep(t.Context()))
	entries, err := r.Keeper.store.read(t.Context(), ledgerOf(w.quotas["quotas/all"], "garden-a"))
	if err != nil || len(entries) != 1 || len(entries["shoots.core.gardener.cloud/garden-a/rest"].Reservations) > 0 {
		t.Errorf("in the ledger, once the time is over: %v, %v", entries, err)
	}
	w.quotas["quotas/all"].UID = "made anew"
	testkit.Must(t, r.sweep(t.Context()))
	if all, err := r.Keeper.store.all(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("ledgers of a former Quota: %v, %v", all, err)
	}
}

// An object that is deleted before anything has read it makes room at once: it was seen, and will not be stored again.
func TestDeletedAtOnce(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": "4"})
	w.bind("garden-a", "b", "all")
	w.bind("garden-b", "b", "all")
	r := w.replica(t, options)
	for i, name := range []string{"one", "two"} {
		if refused := r.write(t, name, shoot("garden-a", "typo", "b", "3")); refused != "" {
			t.Fatalf("creation %d: %s", i, refused)
		}
		if refused := r.write(t, "shrunk-"+name, shoot("garden-a", "typo", "b", "1")); refused != "" {
			t.Fatal(refused)
		}
		w.remove("garden-a/typo")
	}
	if refused := r.write(t, "three", shoot("garden-b", "other", "b", "4")); refused != "" {
		t.Errorf("after the deletion: %s", refused)
	}
}

// A creation beside an object of its name is refused as the API server does it, and reserves nothing: a user could block others with it. One that
// is not stored for another reason is named as that, with the time until which it counts.
func TestCreationBesideAnother(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": "4"})
	w.bind("garden-a", "b", "all")
	w.bind("garden-b", "b", "all")
	r := w.replica(t, options)
	r.write(t, "one", shoot("garden-a", "one", "b", "1"))
	again := r.asked("again", shoot("garden-a", "one", "b", "3"))
	again.Old = nil
	again.Object.SetUID("uid-by-again")
	if refused, err := r.Admit(t.Context(), again); refused != "" || !apierrors.IsAlreadyExists(err) {
		t.Errorf("refused with %q, %v", refused, err)
	}
	lost := shoot("garden-b", "lost", "b", "3")
	if refused, err := r.Admit(t.Context(), r.asked("lost", lost)); refused != "" || err != nil {
		t.Fatal(refused, err)
	}
	const want = "others use 4, together 5 of 4 (3 of that for writes that may not be stored: if they are not, it is free at 2026-01-01T12:01:30Z)"
	if refused := r.write(t, "two", shoot("garden-a", "two", "b", "1")); !strings.Contains(refused, want) {
		t.Errorf("refused with %q, want %q", refused, want)
	}
}

// Objects that were there before a Quota count, and those that are gone do not; whatever a replica has seen.
func TestBefore(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.bind("garden-a", "b")
	r := w.replica(t, options)
	for _, name := range []string{"one", "two", "gone"} {
		r.write(t, name, shoot("garden-a", name, "b", "2"))
	}
	w.limit("all", "Secret", map[string]string{"cpu": "6"})
	w.bind("garden-a", "b", "all")
	bound := w.replica(t, options)
	bound.look()
	w.remove("garden-a/gone")
	if refused := bound.write(t, "three", shoot("garden-a", "three", "b", "2")); refused != "" {
		t.Error(refused)
	}
	if refused := bound.write(t, "four", shoot("garden-a", "four", "b", "1")); !strings.Contains(refused, "others use 6, together 7 of 6") {
		t.Errorf("refused with %q", refused)
	}
}

// A replica that reads slowly does not undo a reservation that another one makes meanwhile.
func TestSlowRead(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": "10"})
	w.bind("garden-a", "b", "all")
	slow, other := w.replica(t, options), w.replica(t, options)
	one := shoot("garden-a", "one", "b", "2")
	other.write(t, "one", one)
	var grown Write
	slow.meanwhile = func() {
		slow.meanwhile = nil
		grown = other.asked("grown", with(one, "cpu", "8"))
		if refused, err := other.Admit(t.Context(), grown); refused != "" || err != nil {
			t.Errorf("refused with %q, %v", refused, err)
		}
	}
	if err := slow.sweep(t.Context()); err != nil || grown.Object == nil {
		t.Fatalf("nothing was read, %v", err)
	}
	if refused := other.write(t, "two", shoot("garden-a", "two", "b", "3")); !strings.Contains(refused, "others use 8, together 11 of 10") {
		t.Errorf("refused with %q", refused)
	}
	if !w.persist(grown) {
		t.Error("the reserved write is not stored")
	}
}

// Nor does it when the object is what it was when the ledger was read: it was less in between.
func TestSlowReadOfWhatCameBack(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": "10"})
	w.bind("garden-a", "b", "all")
	slow, other := w.replica(t, options), w.replica(t, options)
	one := shoot("garden-a", "one", "b", "10")
	settled := func(request, cpu string) {
		t.Helper()
		if refused := other.write(t, request, with(one, "cpu", cpu)); refused != "" {
			t.Fatalf("refused with %q", refused)
		}
		other.look()
		testkit.Must(t, other.sweep(t.Context()))
	}
	settled("one", "10")
	if refused := other.write(t, "smaller", with(one, "cpu", "1")); refused != "" {
		t.Fatalf("refused with %q", refused)
	}
	read := false
	slow.meanwhile = func() {
		slow.meanwhile, read = nil, true
		settled("grown", "10")
	}
	if err := slow.sweep(t.Context()); err != nil || !read {
		t.Fatalf("read %v, %v", read, err)
	}
	if refused := other.write(t, "two", shoot("garden-a", "two", "b", "9")); !strings.Contains(refused, "others use 10, together 19 of 10") {
		t.Errorf("refused with %q", refused)
	}
}

func TestLifetime(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	days := int32(14)
	w.limit("trial", "Secret", nil).Spec.ClusterLifetimeDays = &days
	w.bind("garden-a", "b", "trial")
	r := w.replica(t, options)
	end := func(after time.Duration) string { return noon.Add(after).Format(time.RFC3339) }
	const day = 24 * time.Hour
	one := with(shoot("garden-a", "one", "b", "1"), "ends", end(14*day))
	for i, each := range []struct {
		what   string
		at     time.Duration
		object *unstructured.Unstructured
		want   string
	}{
		{"no end", 0, shoot("garden-a", "one", "b", "1"), "the object must state when it ends: it may live 14 days, until 2026-01-15T12:00:00Z"},
		{"no time", 0, with(one, "ends", "soon"), `when Shoot garden-a/one ends is not known: spec.expires of ContextKind shoots.core.gardener.cloud: "soon" is not a time in RFC 3339`},
		{"too late", 0, with(one, "ends", end(14*day+time.Second)), "the object would end at 2026-01-15T12:00:01Z: it may live 14 days, until 2026-01-15T12:00:00Z"},
		{"the last moment", 0, one, ""},
		{"extended", 10 * day, with(one, "ends", end(20*day)), "the object would end at 2026-01-21T12:00:00Z"},
		{"taken away", 10 * day, with(one, "ends", ""), "the object must state when it ends"},
		{"growing", 10 * day, with(one, "cpu", "2"), ""},
		{"growing after its end", 15 * day, with(one, "cpu", "3"), "the object was to live 14 days, until 2026-01-15T12:00:00Z: it cannot grow any more"},
		{"not growing", 15 * day, with(one, "cpu", "1"), ""},
	} {
		w.clock.SetTime(noon.Add(each.at))
		if got := r.write(t, fmt.Sprint("r", i), each.object); each.want == "" && got != "" || !strings.Contains(got, each.want) {
			t.Errorf("%s: refused with %q, want %q", each.what, got, each.want)
		}
	}
	// One that is being deleted may lose its finalizers, whatever it is.
	w.shoots["garden-a/one"] = with(w.shoots["garden-a/one"], "cpu", "much")
	w.shoots["garden-a/one"].SetDeletionTimestamp(&metav1.Time{Time: noon})
	if got := r.write(t, "last", w.shoots["garden-a/one"]); got != "" {
		t.Errorf("while it is deleted: %s", got)
	}
	w.shoots["garden-a/one"] = with(w.shoots["garden-a/one"], "cpu", "1")
	if got := r.write(t, "unknown", with(w.shoots["garden-a/one"], "cpu", "much")); !strings.Contains(got, "is not a quantity") {
		t.Errorf("no longer known while it is deleted, which would hold up all others: %s", got)
	}
}

// Three replicas, whose views are old, with writes that are lost, that come late, and that conflict: what is stored never exceeds the limit, and
// in the end the ledger has what is stored.
func TestNeverExceeded(t *testing.T) {
	const (
		limit   = 20
		writers = 6
		writes  = 60
		names   = 8
	)
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": fmt.Sprint(limit)})
	for _, namespace := range []string{"garden-a", "garden-b"} {
		w.bind(namespace, "b", "all")
		w.bind(namespace, "same", "all")
	}
	var replicas []*replica
	for range 3 {
		replicas = append(replicas, w.replica(t, options))
	}
	most := resource.MustParse(fmt.Sprint(limit))
	var flying sync.RWMutex // the clock stands while writes are in flight, as these end in time
	var wait sync.WaitGroup
	counts := make([]map[string]int, writers)
	for writer := range writers {
		random := rand.New(rand.NewPCG(1, uint64(writer)))
		count := map[string]int{}
		counts[writer] = count
		wait.Go(func() {
			for i := range writes {
				r := replicas[random.IntN(len(replicas))]
				name, namespace := fmt.Sprint("s", random.IntN(names)), []string{"garden-a", "garden-b"}[random.IntN(2)]
				switch random.IntN(10) {
				case 0:
					w.remove(namespace + "/" + name)
				case 1:
					r.look()
				case 2:
					testkit.Expect(t, r.sweep(t.Context()))
				case 3:
					flying.Lock()
					w.clock.SetTime(w.clock.Now().Add(reserved / 2))
					flying.Unlock()
				default:
					flying.RLock()
					reviewed := r.asked(fmt.Sprint(writer, "-", i), shoot(namespace, name, []string{"b", "same"}[random.IntN(2)], fmt.Sprint(random.IntN(6))))
					refused, err := r.Admit(t.Context(), reviewed)
					switch {
					case apierrors.IsAlreadyExists(err):
						count["refused"]++
					case err != nil:
						t.Error(err)
					case refused != "":
						count["refused"]++
					case random.IntN(4) == 0:
						count["lost"]++
					default:
						if random.IntN(3) == 0 { // it comes late
							testkit.Expect(t, replicas[random.IntN(len(replicas))].sweep(t.Context()))
						}
						if w.persist(reviewed) {
							count["stored"]++
						} else {
							count["conflict"]++
						}
						if used := w.used("cpu"); used.Cmp(most) > 0 {
							t.Errorf("%s of %d are used", used.String(), limit)
						}
					}
					flying.RUnlock()
				}
			}
		})
	}
	wait.Wait()
	total := map[string]int{}
	for _, count := range counts {
		for what, n := range count {
			total[what] += n
		}
	}
	t.Log(total)
	for _, what := range []string{"refused", "lost", "stored"} {
		if total[what] == 0 {
			t.Errorf("no write was %s: %v", what, total)
		}
	}
	w.clock.SetTime(w.clock.Now().Add(reserved))
	for _, r := range replicas {
		r.look()
		testkit.Expect(t, r.sweep(t.Context()))
	}
	entries := testkit.Need(replicas[0].Keeper.store.read(t.Context(), ledgerOf(w.quotas["quotas/all"], "")))(t)
	var ledger resource.Quantity
	for key, each := range entries {
		charge, known := each.charge("cpu")
		if !known || len(each.Reservations) > 0 {
			t.Errorf("%s is not settled: %+v", key, each)
		}
		ledger.Add(charge)
	}
	if used := w.used("cpu"); ledger.Cmp(used) != 0 {
		t.Errorf("the ledger has %s, and %s are used", ledger.String(), used.String())
	}
}

// While it is not known what an object uses, no other can use more. An object of the same namespace is named, and none of another one.
func TestUnknownUsage(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": "10"})
	w.bind("garden-a", "b", "all")
	w.bind("garden-b", "b", "all")
	r := w.replica(t, options)
	for _, name := range []string{"one", "two"} {
		r.write(t, name, shoot("garden-a", name, "b", "1"))
		w.shoots["garden-a/"+name] = with(w.shoots["garden-a/"+name], "cpu", "much")
	}
	r.look()
	testkit.Must(t, r.sweep(t.Context()))
	const why = `spec.usage of ContextKind shoots.core.gardener.cloud: cpu: "much" is not a quantity`
	for namespace, about := range map[string]string{"garden-a": "shoots.core.gardener.cloud garden-a/one: ", "garden-b": ""} {
		want := "Quota quotas/all, which CredentialsBinding " + namespace + "/b lists: how much cpu 2 other objects use is not known: " + about + why
		if refused := r.write(t, namespace, shoot(namespace, "new", "b", "1")); refused != want {
			t.Errorf("refused with %q, want %q", refused, want)
		}
	}
}
