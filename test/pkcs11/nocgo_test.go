//go:build !cgo

package pkcs11

import "testing"

func TestWithoutCgo(t *testing.T) {
	skip(t, "drivers of PKCS#11 need cgo: set CGO_ENABLED=1, and install a C compiler (apt-get install gcc libc6-dev)")
}
