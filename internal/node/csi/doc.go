// Package csi is the driver of volumes with tokens of workload identities: the services Identity and Node of the Container Storage
// Interface, and the kubelet's registration of plugins. In go the kubelet's calls, each with the service-account token of a pod; out come
// volumes with a token of an identity, which is requested with the pod's token and renewed while that is valid. It has no right of its own
// to any token, keeps tokens of pods in memory alone, logs no token, and stores nothing but the files of volumes.
package csi
