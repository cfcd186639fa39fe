package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"os"
)

// signatures are the subjects that no issuer can beat: a bare signature of Go's crypto, in this process.
func signatures() (map[string]subject, error) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte("as long as any token, once it has been hashed"))
	subjects := map[string]subject{}
	for algorithm, key := range map[string]crypto.Signer{"RS256": rsaKey, "ES256": ecKey} {
		subjects[algorithm] = subject{name: "signature " + algorithm, pids: []int{os.Getpid()}, once: func(context.Context) error {
			_, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
			return err
		}}
	}
	return subjects, nil
}
