package signer

import (
	"context"
	"fmt"
	"sync"

	"github.com/credence-id/credence/internal/issuer/keys"
	"github.com/credence-id/credence/internal/keystore"
)

// memory is a folder that gives no ring which lacks what this process has seen: an older ring that is put back revives no key that was
// revoked.
type memory struct {
	*keystore.Directory

	mu   sync.Mutex
	seen keys.Past
}

// Load implements keystore.Store.
func (m *memory) Load(ctx context.Context) (keys.Ring, string, error) {
	ring, version, err := m.Directory.Load(ctx)
	if err != nil {
		return keys.Ring{}, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if lacks := ring.Lacks(m.seen); lacks != "" {
		return keys.Ring{}, "", fmt.Errorf("the folder has an older ring of keys than this process has seen (%s), and nothing is signed with it: put the newest one back, or revoke in this one what was revoked, and restart the signer", lacks)
	}
	m.seen = ring.Past()
	return ring, version, nil
}
