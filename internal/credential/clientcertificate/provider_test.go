package clientcertificate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/test/testkit"
)

// notices is a Terminal for several at once.
type notices struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notices) Notice(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(&n.text, format+"\n", args...)
}
func (*notices) OpenURL(string) error { return nil }

func (n *notices) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.text.Reset()
	return n.text.String()
}

func provider(t *testing.T, cluster *cluster, source *clientcertificate.Source) (*credential.Provider, *notices) {
	terminal := &notices{}
	return &credential.Provider{
		Folder: filepath.Join(t.TempDir(), "cache"), Now: cluster.clock, Terminal: terminal,
		Margin: source.RenewBefore(), LockTimeout: source.Wait(true) + time.Minute,
	}, terminal
}

// Eight clients at once: one request, and so one approval.
func TestOneRequestForAll(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{Duration: time.Hour})
	provider, _ := provider(t, cluster, source)
	cluster.at(time.Minute, cluster.approve)
	keys := make(chan string, 8)
	var all sync.WaitGroup
	for range cap(keys) {
		all.Go(func() {
			got, err := provider.Serve(t.Context(), source, interactive)
			testkit.Expect(t, err)
			keys <- got.KeyPEM.Reveal()
		})
	}
	all.Wait()
	first := <-keys
	for range cap(keys) - 1 {
		if <-keys != first {
			t.Error("two keys")
		}
	}
	if len(cluster.created) != 1 {
		t.Errorf("created %q", cluster.created)
	}
	files, err := filepath.Glob(filepath.Join(provider.Folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// Day by day, with a person who approves within minutes: no client waits for a renewal, and none gets a certificate that is over.
func TestRenewalsByTheProvider(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{Duration: time.Hour})
	provider, _ := provider(t, cluster, source)
	cluster.at(time.Minute, cluster.approve)
	pauses := -1
	approved := 1
	for range 24 * 60 {
		got := testkit.Need(provider.Serve(t.Context(), source, interactive))(t)
		if pauses < 0 {
			pauses = cluster.pauses
		}
		certificate := leaf(t, got)
		if !cluster.clock().Before(certificate.NotAfter) || got.Expires.After(certificate.NotAfter) {
			t.Fatalf("at %s a certificate until %s, reported %s", cluster.clock(), certificate.NotAfter, got.Expires)
		}
		if len(cluster.created) > approved {
			approved++
			cluster.at(2*time.Minute, cluster.approve)
		}
		cluster.advance(time.Minute)
	}
	if cluster.pauses != pauses {
		t.Errorf("clients waited %d times", cluster.pauses-pauses)
	}
	// An hour less the ten minutes before its end, or the five that are half of them.
	if n := len(cluster.created); n < 24 || n > 30 {
		t.Errorf("%d requests in a day", n)
	}
}

// Without an approval, the valid certificate is served to its end, with a notice each time.
func TestRenewalThatNobodyApproves(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{Duration: time.Hour})
	provider, terminal := provider(t, cluster, source)
	cluster.at(time.Second, cluster.approve)
	first := testkit.Need(provider.Serve(t.Context(), source, interactive))(t)
	end := leaf(t, first).NotAfter
	cluster.advance(end.Sub(cluster.clock()) - 9*time.Minute)
	terminal.take()
	for cluster.clock().Before(end) {
		got, err := provider.Serve(t.Context(), source, interactive)
		if err != nil || !got.KeyPEM.Equal(first.KeyPEM) {
			t.Fatalf("%s before its end: %v", end.Sub(cluster.clock()), err)
		}
		cluster.advance(time.Minute)
	}
	if told := terminal.take(); !strings.Contains(told, "kubectl certificate approve "+cluster.created[1]) {
		t.Errorf("notice %q", told)
	}
	if _, err := provider.Serve(t.Context(), source, interactive); !errors.Is(err, credential.ErrNeedsPerson) {
		t.Errorf("after the end: %v", err)
	}
	if len(cluster.created) != 2 {
		t.Errorf("created %q", cluster.created)
	}
}

// A denial is reported, and the valid certificate is served nevertheless.
func TestRenewalThatIsDenied(t *testing.T) {
	cluster := newCluster(t)
	source := cluster.source(clientcertificate.Settings{Duration: time.Hour})
	provider, terminal := provider(t, cluster, source)
	cluster.at(time.Second, cluster.approve)
	first := testkit.Need(provider.Serve(t.Context(), source, interactive))(t)
	cluster.advance(51 * time.Minute)
	for i := range 2 {
		got, err := provider.Serve(t.Context(), source, interactive)
		if err != nil || !got.KeyPEM.Equal(first.KeyPEM) {
			t.Fatalf("not served: %v", err)
		}
		if i == 0 {
			cluster.decide(certificatesv1.CertificateDenied, "No", "not any more")
		}
		cluster.advance(5 * time.Minute)
	}
	if told := terminal.take(); !strings.Contains(told, "was denied (No: not any more)") {
		t.Errorf("notice %q", told)
	}
}
