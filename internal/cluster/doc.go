// Package cluster reads the API of a cluster, as a user, for commands and for the answers that they print. In go the configuration of a
// client, and the names of what is wanted; out come objects, lists page by page, and whether a subject has a right. Errors are those of
// the API: what they mean to a user is for the caller to word. It remembers nothing, and changes no object.
package cluster
