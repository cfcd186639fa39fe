package reports

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

var start0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// server takes reports.
type server struct {
	taken []string
	err   error
}

func (s *server) Report(_ context.Context, name types.NamespacedName, uid types.UID, report v1alpha1.DeliveryReportSpec) error {
	if s.err != nil {
		return s.err
	}
	line := fmt.Sprintf("%s %s %d/%d", name, uid, report.Delivered, report.Secrets)
	if report.Elsewhere > 0 {
		line += fmt.Sprintf(" elsewhere %d %v", report.Elsewhere, report.Names)
	}
	if report.Expires != nil {
		line += " " + report.Expires.Sub(start0).String()
	}
	if report.Oldest != nil {
		line += " " + report.Oldest.Sub(start0).String()
	}
	if report.Failure != nil {
		line += " " + report.Failure.Reason + ": " + report.Failure.Message
	}
	s.taken = append(s.taken, line)
	return nil
}

type world struct {
	*Reporter
	server *server
	clock  *clocktesting.FakePassiveClock
}

func newWorld() world {
	s, c := &server{}, clocktesting.NewFakePassiveClock(start0)
	return world{New(s, 0, c, slog.New(slog.DiscardHandler)), s, c}
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func good(minutes int) Secret {
	lifetime := time.Duration(minutes) * time.Minute
	return Secret{Identity: key("wi"), UID: "u", IssuedAt: start0.Add(-lifetime), Expiry: start0.Add(lifetime)}
}

// look is what the worker does with the identity.
func (w world) look(t *testing.T, want time.Duration) {
	t.Helper()
	if got := w.send(t.Context(), key("wi")); got != want {
		t.Errorf("looked at again after %s, want %s", got, want)
	}
}

func TestOneReportAMinuteAndNoneWithoutAChange(t *testing.T) {
	w := newWorld()
	w.Set(key("b"), good(60))
	w.Set(key("a"), Secret{Identity: key("wi"), UID: "u", Reason: "UseDenied", Message: "no"})
	w.look(t, 0)
	w.look(t, 0)
	w.Set(key("a"), good(30))
	w.look(t, every)
	w.clock.SetTime(start0.Add(every))
	w.look(t, 0)
	w.look(t, 0)
	// An expired token is not delivered.
	w.clock.SetTime(start0.Add(40 * time.Minute))
	w.look(t, 0)
	w.Remove(key("a"))
	w.Remove(key("b"))
	w.clock.SetTime(start0.Add(50 * time.Minute))
	w.look(t, 0)
	w.look(t, 0)
	want := []string{
		"ns/wi u 1/2 1h0m0s -1h0m0s UseDenied: Secret ns/a: no",
		"ns/wi u 2/2 30m0s -1h0m0s",
		"ns/wi u 1/2 1h0m0s -1h0m0s",
		"ns/wi u 0/0",
	}
	if diff := cmp.Diff(want, w.server.taken); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if n := len(w.board.identities) + len(w.board.secrets); n != 0 {
		t.Errorf("%d entries are kept of what is gone", n)
	}
}

func TestReportOfAnotherIdentityOfTheSameName(t *testing.T) {
	w := newWorld()
	w.Set(key("a"), good(60))
	w.look(t, 0)
	again := good(60)
	again.UID = "u2"
	w.Set(key("a"), again)
	w.clock.SetTime(start0.Add(every))
	w.look(t, 0)
	moved := good(60)
	moved.Identity = key("other")
	if changed := w.board.set(key("a"), moved); len(changed) != 2 {
		t.Errorf("looked at: %v", changed)
	}
	w.clock.SetTime(start0.Add(3 * every))
	w.look(t, 0)
	if diff := cmp.Diff([]string{"ns/wi u 1/1 1h0m0s -1h0m0s", "ns/wi u2 1/1 1h0m0s -1h0m0s", "ns/wi u2 0/0"}, w.server.taken); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestRefusedReports(t *testing.T) {
	resource := v1alpha1.Resource("workloadidentities")
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"gone":      {apierrors.NewNotFound(resource, "wi"), 0},
		"another":   {apierrors.NewConflict(resource, "wi", fmt.Errorf("uid")), 0},
		"forbidden": {apierrors.NewForbidden(resource, "wi", nil), refused},
		"too soon":  {apierrors.NewTooManyRequests("", 1), every},
		"outage":    {context.DeadlineExceeded, every},
	} {
		w := newWorld()
		w.Set(key("a"), good(60))
		w.server.err = test.err
		if got := w.send(t.Context(), key("wi")); got != test.want {
			t.Errorf("%s: looked at again after %s, want %s", name, got, test.want)
		}
		w.server.err = nil
		w.clock.SetTime(start0.Add(test.want))
		w.send(t.Context(), key("wi"))
		if sent := len(w.server.taken) == 1; sent != (test.want > 0) {
			t.Errorf("%s: then reported %v", name, w.server.taken)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	w := newWorld()
	w.Set(key("a"), Secret{Identity: key("wi"), Reason: "Refused", Message: strings.Repeat("é", 5000)})
	report, _, _ := w.board.next(key("wi"), start0)
	if n := len([]rune(report.Failure.Message)); n != maxMessage {
		t.Errorf("%d characters are reported", n)
	}
}

func TestRunReports(t *testing.T) {
	taken := make(chan int32, 1)
	r := New(senderFunc(func(report v1alpha1.DeliveryReportSpec) { taken <- report.Secrets }), 0, clocktesting.NewFakePassiveClock(start0), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	r.Set(key("a"), Secret{Identity: key("wi"), Expiry: metav1.NewTime(start0.Add(time.Hour)).Time})
	if got := <-taken; got != 1 {
		t.Errorf("reported %d Secrets", got)
	}
	cancel()
	<-ended
}

type senderFunc func(v1alpha1.DeliveryReportSpec)

func (f senderFunc) Report(_ context.Context, _ types.NamespacedName, _ types.UID, report v1alpha1.DeliveryReportSpec) error {
	f(report)
	return nil
}

// The use of a binding is reported with the first names elsewhere, and again every hour: the server forgets what is not repeated.
func TestUsesOfABindingAreRepeated(t *testing.T) {
	w := newWorld()
	w.Reporter = New(w.server, time.Hour, w.clock, slog.New(slog.DiscardHandler))
	w.Set(key("own"), Secret{Identity: key("b"), UID: "u"})
	for i := range 6 {
		w.Set(key(fmt.Sprint("s", i)), Secret{Identity: key("b"), UID: "u", Elsewhere: true})
	}
	send := func(after, want time.Duration) {
		t.Helper()
		w.clock.SetTime(start0.Add(after))
		if wait := w.send(t.Context(), key("b")); wait != want {
			t.Errorf("after %s looked at again after %s, want %s", after, wait, want)
		}
	}
	send(0, time.Hour)
	send(20*time.Minute, 40*time.Minute)
	send(time.Hour, time.Hour)
	for i := range 6 {
		w.Remove(key(fmt.Sprint("s", i)))
	}
	w.Remove(key("own"))
	send(2*time.Hour, time.Hour)
	send(3*time.Hour, 0)
	const used = "ns/b u 0/7 elsewhere 6 [ns/s0 ns/s1 ns/s2 ns/s3 ns/s4]"
	if diff := cmp.Diff([]string{used, used, "ns/b u 0/0"}, w.server.taken); diff != "" {
		t.Error(diff)
	}
}
