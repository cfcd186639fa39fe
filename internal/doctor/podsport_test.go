package doctor

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/pki"
)

func TestTrusted(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	authority := func() *pki.Authority {
		pair, err := pki.New("ca", 48*time.Hour, now, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		authority, err := pki.Load(pair.Certificate, pair.Key, now)
		if err != nil {
			t.Fatal(err)
		}
		return authority
	}
	ours, other := authority(), authority()
	pair, err := ours.Issue(pki.Request{CommonName: "agent", Hosts: []string{"agent.ns.svc"}, Lifetime: time.Hour}, now, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		certificate, authorities []byte
		host                     string
		after                    time.Duration
		want                     string
	}{
		"trusted":           {pair.Certificate, append(other.PEM(), ours.PEM()...), "agent.ns.svc", 0, ""},
		"other authority":   {pair.Certificate, other.PEM(), "agent.ns.svc", 0, "unknown authority"},
		"no authority":      {pair.Certificate, nil, "agent.ns.svc", 0, "unknown authority"},
		"another name":      {pair.Certificate, ours.PEM(), "agent.other.svc", 0, "not agent.other.svc"},
		"ended":             {pair.Certificate, ours.PEM(), "agent.ns.svc", 2 * time.Hour, "expired"},
		"no certificate":    {nil, ours.PEM(), "agent.ns.svc", 0, "not PEM"},
		"another PEM block": {pair.Key, ours.PEM(), "agent.ns.svc", 0, "x509"},
	} {
		err := trusted(test.certificate, test.authorities, test.host, now.Add(test.after))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
