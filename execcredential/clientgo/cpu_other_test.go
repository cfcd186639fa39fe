//go:build !unix

package clientgo_test

import (
	"testing"
	"time"
)

// used is known on Unix only.
func used(*testing.B) time.Duration { return 0 }
