// Package webhook is the HTTP edge of admission. In come AdmissionReviews (admission.k8s.io/v1) of pods, of Secrets that carry
// tokens, and of workloads with a pod template; out go those that packages pods, secrets and templates answer. It reads what
// they must know: service accounts live, identities, who may use them, RuntimeClasses. What can't be read is an answer of its
// own, with code 500, and never a denial. It writes nothing to any cluster, and logs neither pods nor Secrets.
package webhook
