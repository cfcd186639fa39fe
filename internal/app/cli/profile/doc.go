// Package profile is "credence profile": profiles of service accounts made from running pods, looked at, and given to manifests. In go the arguments
// of the commands, files, and the pods of a cluster; out come manifests, findings and exit codes. The rules are those of internal/profile and the
// packages below it. It writes to no cluster.
package profile
