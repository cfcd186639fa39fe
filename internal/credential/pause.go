package credential

import (
	"context"
	"time"
)

// Pause waits for d by the real clock; its error is that of ctx, where that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
