// Package webhook is the HTTP edge of admission. In come AdmissionReviews (admission.k8s.io/v1) of pods, of Secrets that carry
// tokens, and of workloads with a pod template; out go the answers of packages pods, secrets and templates. It reads their
// inputs: service accounts live, identities, rights to use them, RuntimeClasses. A failed read is an answer of its
// own, with code 500, and never a denial. It writes nothing to any cluster, and logs neither pods nor Secrets.
package webhook
