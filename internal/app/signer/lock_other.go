//go:build !unix

package signer

import "errors"

func lock(string) (release func(), err error) {
	return nil, errors.New("the signer needs the file locks of a Unix system")
}
