// Package e2e tests the whole of Credence as its users meet it: the built programs, a real Kubernetes API, real kubectl,
// real relying parties. In goes the folder of the programs (CREDENCE_BIN), nothing comes out but test results.
package e2e
