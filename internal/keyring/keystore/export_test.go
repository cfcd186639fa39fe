package keystore

import (
	"context"

	"github.com/credence-id/credence/internal/identity"
)

// Internals for the tests of the stores.
const (
	DocumentName = documentName
	MinPause     = minPause
	FirstRetry   = firstRetry
	LoadTimeout  = loadTimeout
)

// KeyName is the name that a key is kept under.
func KeyName(id identity.KeyID) string { return keyName(id) }

// Path is the directory of the store.
func (d *Directory) Path() string { return d.path }

// File is the path of a file of the store.
func (d *Directory) File(name string) string { return d.file(name) }

// Lock is held by writers.
func (d *Directory) Lock(ctx context.Context) (release func(), err error) { return d.lock(ctx) }
