// Package selftokens serves workloadidentities/selftoken to the pods of a workload cluster, whose tokens the identity cluster can't verify. In goes
// a request with a service-account token of a pod, for an audience of the agent's own; out comes a token of the identity, which the agent requests
// as itself once it has found that the pod runs and that its account may use the identity. It stores nothing, and never logs a token.
package selftokens
