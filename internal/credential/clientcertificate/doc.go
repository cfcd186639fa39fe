// Package clientcertificate is the source of short-lived client certificates by the CertificateSigningRequest API of Kubernetes. In go
// a user name and groups, a signer, and the cluster that the caller's kubeconfig leads to; out comes a certificate with its private
// key, once somebody has approved the request. The key is made here, anew for each certificate, and leaves the process only for the
// entry that is kept, also while the request waits, so that the next run finds the same request. The source never approves a request,
// never asks for approval of what the signer issues otherwise than asked, and takes no key out of a device. It holds nothing of the
// libraries of Kubernetes, so that a certificate that is kept is served without them: kubeapi is the way to the cluster.
package clientcertificate
