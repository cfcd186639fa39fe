package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/discovery"
)

// cacheFile holds both documents, so that a rename replaces them together; revokedFile the keys that may never be in them.
const (
	cacheFile   = "last-good-documents.json"
	revokedFile = discovery.RevokedKey
)

// maxCacheBytes holds two of the largest documents: a character takes at most six bytes in a JSON string.
const maxCacheBytes = 2*6*discovery.MaxDocumentBytes + 1<<10

// documentsCache keeps the last good documents on disk, for a start without the API. An empty folder keeps nothing.
type documentsCache struct{ folder string }

type cached struct {
	Configuration string `json:"configuration"`
	JWKS          string `json:"jwks"`
}

// load returns what was saved last; no error and no data if nothing was.
func (c documentsCache) load() (configuration, jwks []byte, err error) {
	if c.folder == "" {
		return nil, nil, nil
	}
	path := filepath.Join(c.folder, cacheFile)
	data, err := readBounded(path, maxCacheBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read cached documents: %w", err)
	}
	var documents cached
	if err := json.Unmarshal(data, &documents); err != nil {
		return nil, nil, fmt.Errorf("decode cached documents in %s: %w", path, err)
	}
	return []byte(documents.Configuration), []byte(documents.JWKS), nil
}

// save replaces what is kept, at once and durably.
func (c documentsCache) save(configuration, jwks []byte) error {
	if c.folder == "" {
		return nil
	}
	data, err := json.Marshal(cached{Configuration: string(configuration), JWKS: string(jwks)})
	if err != nil {
		return fmt.Errorf("encode documents for the cache: %w", err)
	}
	return c.replace(cacheFile, data)
}

// revoked is the last saved list, as discovery.ParseRevoked reads it, or "".
func (c documentsCache) revoked() string {
	if c.folder == "" {
		return ""
	}
	return readList(filepath.Join(c.folder, revokedFile))
}

// saveRevoked replaces the list.
func (c documentsCache) saveRevoked(text string) error {
	if c.folder == "" || text == "" {
		return nil
	}
	return c.replace(revokedFile, []byte(text))
}

func (c documentsCache) replace(name string, data []byte) error {
	path := filepath.Join(c.folder, name)
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return fmt.Errorf("create documents cache: %w", err)
	}
	if _, err := atomicfile.Update(path, data, 0o600); err != nil {
		return fmt.Errorf("write documents cache: %w", err)
	}
	return nil
}
