package clientgo_test

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// beside runs f with a config that client-go's own plugin serves, and with one that this library serves with a clock that stands still.
func beside(t *testing.T, f func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config)) {
	t.Run("client-go", func(t *testing.T) { f(t, false, func(c *rest.Config) *rest.Config { return c }) })
	t.Run("execcredential", func(t *testing.T) {
		pool, _ := newPool(t, execcredential.Options{})
		f(t, true, func(c *rest.Config) *rest.Config { return adapted(t, pool, c) })
	})
}

// 50 requests one after the other, with a program whose output is past its expiry: client-go runs it for each, and this library serves
// each what the last run gave, without a wait.
func TestExpiredOutputOneAfterTheOther(t *testing.T) {
	beside(t, func(t *testing.T, ours bool, through func(*rest.Config) *rest.Config) {
		server := newAPIServer(t)
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			return exectest.Token("abc", time.Now().Add(-time.Hour))
		})
		client := clientOf(t, through(server.config(provider)))
		for range 50 {
			if _, status, err := get(client, server.URL); status != 200 {
				t.Fatalf("status %d, error %v", status, err)
			}
		}
		if runs := provider.Runs(); ours && runs != 1 || !ours && runs < 50 {
			t.Errorf("%d runs", runs)
		}
	})
}
