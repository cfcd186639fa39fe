// Package securitycontext compares internal/securitycontext and internal/profile with Kubernetes' own functions, of k8s.io/kubernetes as a
// module, and with the checks of Pod Security. In go pods that are generated from fixed seeds; nothing comes out but test failures. It is a module of its own, so that
// Kubernetes is not a dependency of Credence.
package securitycontext
