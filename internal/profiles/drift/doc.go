// Package drift reports which running pods no longer match the profile of their service account, and evicts them, or restarts their workloads, where a
// profile wants it. In go profiles, and the pods of their namespaces, decided on again; out come counts and a condition in the status of each profile,
// Events, metrics, evictions, and restarts, one at a time. It makes no pod, changes of workloads one annotation of their templates, and evicts no pod that no
// controller would make again.
package drift
