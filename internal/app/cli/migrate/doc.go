// Package migrate is "credence migrate": objects of other systems as those of Credence. In go what a cluster stores; out come manifests.
// It changes nothing.
package migrate
