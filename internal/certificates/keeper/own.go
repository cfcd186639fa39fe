package keeper

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/certificates"
	"github.com/credence-id/credence/internal/pki"
)

// own is the certificate that the Keeper shows itself: the one of its Secret, and before there is one, one of an authority that is
// thrown away. Probes take any.
type own struct {
	current atomic.Pointer[tls.Certificate]
}

func (o *own) begin(needs Needs) error {
	const lifetime = 24 * time.Hour
	now := needs.Now()
	pair, err := pki.New(certificates.Own, lifetime, now, needs.Random)
	if err != nil {
		return err
	}
	authority, err := pki.Load(pair.Certificate, pair.Key, now)
	if err != nil {
		return err
	}
	if pair, err = authority.Issue(pki.Request{CommonName: certificates.Own, Hosts: []string{"localhost"}, Lifetime: lifetime}, now, needs.Random); err != nil {
		return fmt.Errorf("make the first certificate of this program: %w", err)
	}
	o.take(certificates.Stored{Pair: pair})
	return nil
}

// take uses a certificate that was found, if it can be.
func (o *own) take(found certificates.Stored) {
	if pair, err := tls.X509KeyPair(found.Certificate, found.Key); err == nil {
		o.current.Store(&pair)
	}
}

// GetCertificate is for tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.own.current.Load(), nil
}
