// Package inventory finds out which identities there are, and where their tokens are delivered: the Secrets of each, the pods that mount
// them, when a token expires and is renewed, and the newest Warning. In go the APIs of the clusters, read as a user; out comes a Report,
// which marshals to JSON, with notes on what the user may not read. It keeps no token, and changes nothing.
package inventory
