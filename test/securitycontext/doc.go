// Package securitycontext compares internal/securitycontext with Kubernetes' own functions, of k8s.io/kubernetes as a module. In
// go pods that are generated from fixed seeds; nothing comes out but test failures. It is a module of its own, so that
// Kubernetes is not a dependency of Credence.
package securitycontext
