// Package externalsigner signs tokens with keys that another process holds: a plugin in front of a KMS or an HSM that serves
// the external signer API of Kubernetes (k8s.io/externaljwt apis/v1; KEP-740) on a unix socket. In go claims, a clock, the
// times by which keys change, and a store for the history of published keys; out come tokens whose header and signature were
// checked against the keys that the plugin announced, and the public keys to publish. It never returns a token under a
// key that relying parties may not know yet, never trusts an unchecked answer of the plugin, and never holds a private key.
package externalsigner
