package sdk

import (
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

// A token of the longest lifetime that the adapter allows is accepted until shortly before its end, and so is one that was
// just issued; where the cloud has a limit, a token beyond it is refused.
func TestLongestLifetime(t *testing.T) {
	w := newWorld(t)
	for _, c := range clouds() {
		longest := targets.For(c.name).Limits().Lifetime
		if longest == 0 {
			longest = 48 * time.Hour // what the issuer grants at most
		}
		for _, used := range []time.Duration{0, longest - 10*time.Minute} {
			t.Run(c.String()+"/used after "+used.String(), func(t *testing.T) {
				asked := request(c)
				asked.Lifetime = longest
				token := testkit.Need(w.plane.Issue(asked, time.Now().Add(-used)))(t)
				pod := newPod(t, c, w.authority)
				pod.deliver(t, token.Token)
				pod.start(t)
				w.granted(t, c, pod.ask(t), token)
			})
		}
	}
	for _, beyond := range []struct {
		cloud  cloud
		change func(*issuer.Request)
		used   time.Duration
		want   string
	}{
		{azureCloud(), func(r *issuer.Request) { r.Lifetime = 25*time.Hour + time.Second }, 0, "AADSTS70023"},
		{googleCloud(), func(r *issuer.Request) { r.Lifetime = 48 * time.Hour }, 0, "exp must be less than 48 hours"},
		{alibabaCloud(), func(r *issuer.Request) { r.Lifetime = 13 * time.Hour }, 12*time.Hour + time.Minute, "longer than the issuance limit"},
	} {
		c := beyond.cloud
		t.Run(c.String()+"/beyond", func(t *testing.T) {
			asked := request(c)
			beyond.change(&asked)
			token := testkit.Need(w.plane.Issue(asked, time.Now().Add(-beyond.used)))(t)
			pod := newPod(t, c, w.authority)
			pod.deliver(t, token.Token)
			pod.start(t)
			if got := pod.ask(t); !strings.Contains(got.Error, beyond.want) {
				t.Errorf("the SDK returns %q, want %q in it", got.Error, beyond.want)
			}
		})
	}
}
