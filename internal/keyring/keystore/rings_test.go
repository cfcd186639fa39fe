package keystore_test

import (
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
)

func firstRing() keys.Ring {
	first, _ := keystoretest.Rings()
	return first
}

func nextRing() keys.Ring {
	_, next := keystoretest.Rings()
	return next
}
