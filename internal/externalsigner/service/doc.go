// Package service is the server of the external signer API of Kubernetes (k8s.io/externaljwt apis/v1; KEP-740) on a unix
// socket, so that an unmodified kube-apiserver signs the tokens of its service accounts with keys that rotate.
// In go the claims that kube-apiserver sends and a ring of keys that another process rotates; out come headers, signatures and
// public keys. It never signs claims of another issuer or of a longer lifetime than the ring allows, never with a ring that may
// have been replaced, and never shows a token or a private key in errors or logs.
package service
