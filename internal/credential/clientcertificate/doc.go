// Package clientcertificate is the source of short-lived client certificates by the CertificateSigningRequest API of Kubernetes. In go
// a user name and groups, a signer, and the cluster of the caller's kubeconfig; out comes a certificate with its private
// key, once the request is approved. The key is made here, anew for each certificate, and leaves the process only for the
// stored entry, also while the request waits, so that the next run finds the same request. The source never approves a request,
// never accepts a certificate that differs from the request, and takes no key out of a device. It imports no
// libraries of Kubernetes, so that a stored certificate is served without them: package kubeapi connects to the cluster.
package clientcertificate
