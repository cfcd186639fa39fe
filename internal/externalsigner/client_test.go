package externalsigner_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

const (
	// shortly is the deadline of calls that are to hang.
	shortly = 50 * time.Millisecond
	// patience is that of all others.
	patience = 5 * time.Minute
)

func claims() []byte { return []byte(`{"iss":"https://identity.example.com","sub":"a"}`) }

func both() []identity.Algorithm { return []identity.Algorithm{identity.RS256, identity.ES256} }

// newClient is a client whose calls have a deadline, or for 0 patience.
func newClient(t *testing.T, socket string, timeout time.Duration) *externalsigner.Client {
	t.Helper()
	client := testkit.Need(externalsigner.New(externalsigner.Config{Socket: socket, Timeout: cmp.Or(timeout, patience)}))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// connected is a client of a good signer that has answered: a later call that gets no answer is one that hangs.
func connected(t *testing.T, fake *externalsignertest.Fake, timeout time.Duration) *externalsigner.Client {
	t.Helper()
	client := newClient(t, externalsignertest.Serve(t, fake), timeout)
	testkit.Eventually(t, "the signer answers", func() bool {
		_, err := client.Keys(t.Context())
		return err == nil
	})
	return client
}

func reasonOf(err error) externalsigner.Reason {
	reason, _ := externalsigner.ReasonOf(err)
	return reason
}

func TestFakeConforms(t *testing.T) {
	fake := externalsignertest.NewFake()
	for signing, name := range []string{"ES256", "RS256"} {
		t.Run(name, func(t *testing.T) {
			fake.Change(func(s *externalsignertest.State) { s.Signing = signing })
			externalsignertest.Run(t, externalsignertest.Subject{Socket: externalsignertest.Serve(t, fake), Claims: claims})
		})
	}
}

func TestEachKeyDefectHasItsReason(t *testing.T) {
	for _, defect := range externalsignertest.KeyDefects() {
		t.Run(defect.Name, func(t *testing.T) {
			fake := externalsignertest.NewFake()
			client := connected(t, fake, timeoutFor(defect))
			fake.Change(defect.Plant)
			_, err := client.Keys(t.Context())
			if reasonOf(err) != defect.Reason {
				t.Errorf("%s (%v), want %s", reasonOf(err), err, defect.Reason)
			}
		})
	}
}

func TestEachSignDefectHasItsReason(t *testing.T) {
	for _, defect := range externalsignertest.SignDefects() {
		t.Run(defect.Name, func(t *testing.T) {
			fake := externalsignertest.NewFake()
			client := connected(t, fake, timeoutFor(defect))
			announced := keysOf(t, fake)
			fake.Change(defect.Plant)
			signed, err := client.Sign(t.Context(), announced, claims(), both())
			if reasonOf(err) != defect.Reason || !signed.Token.IsZero() {
				t.Errorf("%s (%v), want %s", reasonOf(err), err, defect.Reason)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is not one line: %q", err)
			}
		})
	}
}

// timeoutFor is short where nothing else ends the call.
func timeoutFor(defect externalsignertest.Defect) time.Duration {
	if defect.Reason == externalsigner.ReasonTimeout {
		return shortly
	}
	return 0
}

func keysOf(t *testing.T, fake *externalsignertest.Fake) externalsigner.Announcement {
	t.Helper()
	announced := testkit.Need(newClient(t, externalsignertest.Serve(t, fake), 0).Keys(t.Context()))(t)
	return announced
}

func TestExcludedKeyDoesNotSign(t *testing.T) {
	fake := externalsignertest.NewFake()
	fake.Change(func(s *externalsignertest.State) { s.Keys[0].Excluded = true })
	client := newClient(t, externalsignertest.Serve(t, fake), 0)
	announced := testkit.Need(client.Keys(t.Context()))(t)
	if _, err := client.Sign(t.Context(), announced, claims(), both()); reasonOf(err) != externalsigner.ReasonExcludedKey {
		t.Errorf("%v, want %s", err, externalsigner.ReasonExcludedKey)
	}
}

func TestMetadataTooShort(t *testing.T) {
	fake := externalsignertest.NewFake()
	fake.Change(func(s *externalsignertest.State) { s.MaxLifetime = 599 })
	client := newClient(t, externalsignertest.Serve(t, fake), 0)
	if _, err := client.MaxLifetime(t.Context()); reasonOf(err) != externalsigner.ReasonMetadata {
		t.Errorf("%v, want %s", err, externalsigner.ReasonMetadata)
	}
}

func TestNobodyOnTheSocket(t *testing.T) {
	client := newClient(t, externalsignertest.Socket(t), shortly)
	if _, err := client.Keys(t.Context()); reasonOf(err) != externalsigner.ReasonUnreachable {
		t.Errorf("%s (%v), want %s", reasonOf(err), err, externalsigner.ReasonUnreachable)
	}
}

func TestSocketPathIsNoURL(t *testing.T) {
	socket := externalsignertest.Socket(t) + "%2f?#"
	if _, err := newClient(t, socket, shortly).Keys(t.Context()); err == nil || !strings.Contains(err.Error(), socket+": ") {
		t.Errorf("%v, want an error that names %s", err, socket)
	}
	externalsignertest.ServeAt(t, socket, externalsignertest.NewFake())
	testkit.Expect(t, testkit.Err(newClient(t, socket, 0).Keys(t.Context())))
}

// A signer that is started later, or again, is used at once.
func TestSignerThatRestarts(t *testing.T) {
	socket := externalsignertest.Socket(t)
	client := newClient(t, socket, 0)
	fake := externalsignertest.NewFake()
	for range 2 {
		answered := make(chan error, 1)
		go func() {
			_, err := client.Keys(t.Context())
			answered <- err
		}()
		stop := externalsignertest.ServeAt(t, socket, fake)
		testkit.Must(t, <-answered)
		stop()
	}
}

func TestNewRefuses(t *testing.T) {
	for name, config := range map[string]externalsigner.Config{
		"no socket":            {},
		"a relative path":      {Socket: "run/signer.sock"},
		"an abstract socket":   {Socket: "@signer"},
		"a URL":                {Socket: "tcp://127.0.0.1:1"},
		"a path that is long":  {Socket: "/" + strings.Repeat("a", 103)},
		"a timeout below zero": {Socket: "/s", Timeout: -1},
	} {
		if client, err := externalsigner.New(config); err == nil {
			_ = client.Close()
			t.Errorf("%s: it was taken", name)
		}
	}
}

func TestReasons(t *testing.T) {
	all := externalsigner.Reasons()
	for i, reason := range all {
		if reason == "" || slices.Contains(all[:i], reason) {
			t.Errorf("reason %q is empty or there twice", reason)
		}
	}
	if _, ok := externalsigner.ReasonOf(errors.New("other")); ok {
		t.Error("another error has a reason")
	}
}

// Keys announced under kids that are not hashes can be published.
func TestAnnouncementCanBePublished(t *testing.T) {
	fake := externalsignertest.NewFake()
	fake.Change(func(s *externalsignertest.State) { s.Keys[0].ID = strings.Repeat("~", 1024) })
	published := observe(t, externalsigner.Ledger{}, keysOf(t, fake), time.Now()).Ledger.Published()
	testkit.Expect(t, testkit.Err(discovery.New("https://identity.example.com", published)))
}
