// Package doctor checks the whole way from the API to the mounted token: the API and its clock, webhooks, agent, keys, issuer, labels and
// annotations, identities, and every Secret that carries a token. In go the APIs of the clusters, read as a user; out comes a Diagnosis,
// which marshals to JSON. Checks of what the user may not read are skipped, and nothing is changed.
package doctor
