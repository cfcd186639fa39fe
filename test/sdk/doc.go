// Package sdk tests that the real SDKs of AWS, Azure, Google Cloud and Alibaba Cloud get credentials with what Credence puts
// into a pod. In go the files and variables of the target adapters, and tokens of the real issuer; nothing comes out but test
// failures. Each pod is a process with nothing else in its environment, in a network where the clouds' names lead to a stand-in
// (package sts), or to a real MinIO. One test runs whole planes in that network, and loses one. The output for Terraform is one
// configuration for HashiCorp's parser. It is a module of its own, so that the programs do not depend on any cloud's SDK, and it never
// reaches a cloud.
package sdk
