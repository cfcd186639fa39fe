//go:build unix

package execcredential_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func TestKilled(t *testing.T) {
	killed := exectest.NewProvider(t, func(call exectest.Call) exectest.Answer {
		_ = syscall.Kill(call.PID, syscall.SIGKILL)
		return exectest.Answer{Hang: true}
	})
	pool, _ := newPool(t, execcredential.Options{})
	_, err := sourceOf(t, pool, killed.Config()).Get(t.Context())
	var exit *execcredential.ExitError
	if !errors.As(err, &exit) || exit.Code != -1 || exit.Signal != "killed" {
		t.Fatalf("error %#v", err)
	}
}
