// Package drift is "credence drift": which running pods would be other pods today, by internal/drift/survey, as text, JSON or YAML. In go
// namespaces; out come pods with what differs, and the exit code.
package drift
