package renewal

import (
	"fmt"
	"time"
)

// Window is the part of a token's life in which it is renewed, as fractions of its lifetime.
type Window struct {
	From, To float64
}

// defaultWindow leaves a fifth of the lifetime for outages, and spreads tokens that were issued at once.
var defaultWindow = Window{From: 0.6, To: 0.8}

// Complete fills in what is unset, and checks the rest.
func (w Window) Complete() (Window, error) {
	if w == (Window{}) {
		return defaultWindow, nil
	}
	if w.From < 0.1 || w.To > 0.95 || w.From >= w.To {
		return w, fmt.Errorf("the window of renewal, %g to %g of the lifetime, must lie between 0.1 and 0.95 and not be empty", w.From, w.To)
	}
	return w, nil
}

// Draw returns when a token is renewed: a point of the window, each as likely as any other. random is uniform in [0, 1). Whole
// seconds, as the annotation has.
func (w Window) Draw(issuedAt, expiry time.Time, random func() float64) time.Time {
	lifetime := expiry.Sub(issuedAt)
	fraction := w.From + (w.To-w.From)*random()
	return issuedAt.Add(time.Duration(float64(lifetime) * fraction)).Truncate(time.Second).UTC()
}
