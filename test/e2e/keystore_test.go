package e2e_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
)

// The key store in a Secret keeps its promises on a real API server, as it does on the fake of its own tests.
func TestSecretKeyStore(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	var made atomic.Int64
	keystoretest.Run(t, func(t *testing.T) func() keystore.Store {
		name := fmt.Sprintf("ring-%d", made.Add(1))
		return func() keystore.Store { return keystore.NewSecret(shared.client(t).CoreV1(), namespace, name) }
	})
}
