// Package pkcs11 uses the library execcredential with keys in PKCS#11 tokens, against a real API server: SoftHSM is the token, and
// credence-devcluster the cluster. In go tokens that are made for the tests; nothing comes out but test failures, and Token as an
// example to copy. It is a module of its own, because drivers of PKCS#11 need cgo: Credence itself stays pure Go.
package pkcs11
