// Package sts stands in for the token services of AWS, Azure, Google Cloud and Alibaba Cloud. In go the requests that their
// SDKs send, out come credentials, and passwords of their registries of images, or the refusal that the cloud would give, in its
// own shape and with its own code. Each token is verified as the cloud does it: the keys are found through OIDC discovery at the
// issuer's URL, over TLS; then come issuer, algorithm, times, audience, subject, and the limits of the cloud. The credentials open
// nothing but those registries, and it never takes a token that it has not verified.
package sts
