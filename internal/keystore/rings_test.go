package keystore_test

import (
	"github.com/credence-id/credence/internal/issuer/keys"
	"github.com/credence-id/credence/internal/keystore/keystoretest"
)

func firstRing() keys.Ring {
	first, _ := keystoretest.Rings()
	return first
}

func nextRing() keys.Ring {
	_, next := keystoretest.Rings()
	return next
}
