// Package drift reports which running pods no longer match the profile of their service account, and evicts them where a profile wants it. In go
// profiles, and the pods of their namespaces, decided on again; out come counts and a condition in the status of each profile, Events, metrics, and
// evictions, one at a time. It makes no pod, changes none, and evicts none that no controller would make again.
package drift
