// Package survey decides again about all pods that run in a cluster, or in a namespace of it, as a user. In go the API and a namespace; out comes
// how many pods are current, and those that are not. Facts that the user may not read leave pods unknown, with a note about the right that is
// missing. It changes nothing.
package survey
