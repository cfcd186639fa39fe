// Package gmsa decides which group managed service accounts of Active Directory the containers of a pod run as. In go a pod,
// the GMSACredentialSpecs that it names, and what its service account may use; out come a patch that fills in the contents
// (Expand), or a refusal with its reason (Authorize). It makes no requests, and its messages show contents only to users who may
// use them.
package gmsa
