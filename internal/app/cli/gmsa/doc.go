// Package gmsa is "credence gmsa": write, check, convert and explain the credential specs of Windows pods. In go files of YAML or JSON, with
// the places of all that is in them; out come manifests and findings. Nothing is applied.
package gmsa
