package sdk

import (
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/test/sdk/plane"
	"github.com/credence-id/credence/test/testkit"
)

// A token that the cloud must refuse gives no credentials, and the SDK returns the cloud's reason.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	stranger := testkit.Need(plane.New(issuerURL))(t)
	for _, c := range clouds() {
		cases := map[string]struct {
			change func(*issuer.Request)
			by     *plane.Plane
			at     time.Time
			want   string
		}{
			"audience":    {change: func(r *issuer.Request) { r.Audiences = []string{"another"} }, want: c.refusals.audience},
			"subject":     {change: func(r *issuer.Request) { r.Identity.Name += "-2" }, want: c.refusals.subject},
			"expired":     {at: time.Now().Add(-2 * time.Hour), want: c.refusals.expired},
			"unpublished": {by: stranger, want: c.refusals.unpublished},
			"algorithm":   {change: func(r *issuer.Request) { r.TargetAlgorithm = identity.ES256 }, want: c.refusals.algorithm},
		}
		for name, refused := range cases {
			if refused.want == "" {
				continue
			}
			t.Run(c.String()+"/"+name, func(t *testing.T) {
				asked := request(c)
				if refused.change != nil {
					refused.change(&asked)
				}
				if refused.by == nil {
					refused.by = w.plane
				}
				if refused.at.IsZero() {
					refused.at = time.Now()
				}
				token := testkit.Need(refused.by.Issue(asked, refused.at))(t)
				before := len(w.sts.Grants())
				pod := newPod(t, c, w.authority)
				pod.deliver(t, token.Token)
				// The SDK of AWS tries again what could pass by itself, with pauses.
				pod.start(t, "AWS_MAX_ATTEMPTS=1")
				got := pod.ask(t)
				if !shows(got.Error, refused.want) {
					t.Errorf("the SDK returns %q, want %q in it", got.Error, refused.want)
				}
				if got.Presented != "" || len(w.sts.Grants()) != before {
					t.Error("credentials were given")
				}
			})
		}
	}
}

// shows reports whether a text has the parts of another one in their order; … stands between them.
func shows(text, want string) bool {
	for part := range strings.SplitSeq(want, "…") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}
