// Package drift decides again about pods that run: whether the API would make the same pod today, by the rules of admission. In go a pod as it is
// stored, and what is known of its account, identities and credential specs now; out comes whether it is current, the first field that differs, or
// why it would be refused. It reads nothing, and changes no pod.
package drift
