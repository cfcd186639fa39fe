package oidc

import (
	"context"
	"time"
)

// refreshGrace is how long a refresh goes on after the client is canceled or interrupted. Many providers accept a refresh token once:
// without their answer the login would be lost.
const refreshGrace = 2 * time.Second

// outlasting returns a context that ends so much later than ctx, if that is canceled, or when done is called. wait is that of a Config.
func outlasting(ctx context.Context, d time.Duration, wait func(context.Context, time.Duration) error) (longer context.Context, done func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = wait(longer, d) // or until done is called
		cancel()
	})
	return longer, func() {
		stop()
		cancel()
	}
}
