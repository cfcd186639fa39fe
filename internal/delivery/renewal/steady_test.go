package renewal_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/test/testkit"
)

// Ten thousand tokens that were all issued in the same second: how many are renewed in the busiest minute, beside the average. No
// token is renewed before its window, or twice.
func TestTenThousandAtOnceSpreadOut(t *testing.T) {
	const (
		tokens   = 10000
		lifetime = time.Hour
		minutes  = 8 * 60
	)
	window := testkit.Need(renewal.Window{}.Complete())(t)
	random := rand.New(rand.NewPCG(3, 4))
	var perMinute [minutes]int
	for range tokens {
		at := issued
		for {
			token := renewal.Token{Subject: "s", IssuedAt: at, Expiry: at.Add(lifetime)}
			state := renewal.State{Token: &token, RenewAt: window.Draw(at, token.Expiry, random.Float64).Format(time.RFC3339)}
			decision := renewal.Decide(state, renewal.Want{Subject: "s"}, at)
			if decision.Renew() {
				t.Fatalf("renewed at once: %s", decision.Reason)
			}
			if early := renewal.Decide(state, renewal.Want{Subject: "s"}, decision.At.Add(-time.Second)); early.Renew() {
				t.Fatalf("renewed a second early: %s", early.Reason)
			}
			if due := renewal.Decide(state, renewal.Want{Subject: "s"}, decision.At); due.Reason != renewal.Due {
				t.Fatalf("not renewed at its time: %+v", due)
			}
			at = decision.At
			minute := int(at.Sub(issued) / time.Minute)
			if minute >= minutes {
				break
			}
			perMinute[minute]++
		}
	}
	average := float64(tokens) / (0.7 * lifetime.Minutes())
	for lives, limit := range map[[2]int]float64{{0, 2}: 4, {2, 8}: 3} {
		var busiest int
		for minute := lives[0] * 60; minute < lives[1]*60; minute++ {
			busiest = max(busiest, perMinute[minute])
		}
		ratio := float64(busiest) / average
		t.Logf("lifetimes %d to %d: %d in the busiest minute, %.2f times the average of %.0f", lives[0], lives[1], busiest, ratio, average)
		if ratio > limit {
			t.Errorf("lifetimes %d to %d: the busiest minute has %.2f times the average, want at most %g", lives[0], lives[1], ratio, limit)
		}
	}
}
