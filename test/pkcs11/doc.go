// Package pkcs11 uses the library execcredential with keys in PKCS#11 tokens, and in a TPM, against a real API server: SoftHSM is the
// token, swtpm the TPM, and credence-devcluster the cluster. In go keys that are made for the tests; nothing comes out but test
// failures, and Token as an example to copy. It is a module of its own, because drivers of PKCS#11 need cgo: Credence itself stays pure Go.
package pkcs11
