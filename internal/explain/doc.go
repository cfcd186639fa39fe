// Package explain finds out what becomes of a pod: which identities and accounts it gets, with which files and variables, or why it is
// refused or does not start. In go the APIs of the clusters, read as a user, and a pod or what makes pods; out come values that marshal
// to JSON, with notes on facts that the user may not read. The rules are those of the webhook; a pod is at most created as a dry run.
package explain
