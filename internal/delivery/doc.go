// Package delivery keeps Secrets filled with fresh tokens of workload identities: the controllers of the agent. In go the
// Secrets, service accounts and pods of the workload cluster and the identities of the identity cluster; out come tokens in
// Secrets, Secrets for service accounts, and pods that may be scheduled. It signs nothing, never logs a token, and touches no
// Secret that is not labelled for it.
package delivery
