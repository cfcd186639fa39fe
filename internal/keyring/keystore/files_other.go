//go:build !unix

package keystore

import (
	"context"
	"errors"
)

// errUnsupported refuses key directories where file modes do not control access.
var errUnsupported = errors.New("key directories need the file modes of a Unix system: keep the ring elsewhere")

func (d *Directory) lock(context.Context) (func(), error) { return nil, errUnsupported }

func checkDirectory(string) error { return errUnsupported }

func readPrivate(string) ([]byte, error) { return nil, errUnsupported }
