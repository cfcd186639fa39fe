// Package imagecredentials wires credence-image-credentials, an image credential provider of the kubelet (KEP-2133, KEP-4412). In goes the
// kubelet's request, with an image and a token of the pod's service account; out come a user name and a password for that image's registry. It
// has no right of its own: it requests the token of the identity as the pod's service account, and hands it to a registry of its
// configuration alone. It writes nothing, and logs no token.
package imagecredentials
