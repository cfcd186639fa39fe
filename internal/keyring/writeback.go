package keyring

import (
	"context"
	"errors"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// writeBack stores the ring that this process read last, if the stored one is gone or older, and returns what is stored then. The ring
// must know everything that is remembered outside, as of now: another process may have revoked a key while this one was cut off. A
// stored ring must be a former state of it. A ring with consent is left alone, as an operator has put it there.
func (s *Remembering) writeBack(ctx context.Context, past keys.Past, stored keys.Ring, version string, loaded error) (keys.Ring, string, error) {
	s.mu.Lock()
	newest := s.newest
	s.mu.Unlock()
	gone := errors.Is(loaded, keystore.ErrNotFound)
	former := loaded == nil && stored.Resumed == nil && stored.Revision < newest.Revision && newest.Lacks(stored.Past()) == ""
	if len(newest.Keys) == 0 || !gone && !former || newest.Revision < past.Revision || newest.Lacks(past) != "" {
		return stored, version, loaded
	}
	if err := s.Store.Save(ctx, newest, version); err != nil && !errors.Is(err, keystore.ErrConflict) {
		if loaded == nil {
			return stored, version, nil
		}
		return keys.Ring{}, "", errors.Join(loaded, err)
	}
	if s.Log != nil {
		s.Log.WarnContext(ctx, "the stored ring of keys was gone, or an older one: the one that was read last was written back", "store", s.String(), "gone", gone, "revision", newest.Revision)
	}
	return s.Store.Load(ctx)
}
