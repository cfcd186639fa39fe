// Package node is one node of the cluster on this machine: a kube-scheduler, a kubelet, a kube-proxy, a containerd and cluster DNS, as
// processes that are started again when they end. Linux only, and only for root.
//
// In go Settings; Supervise returns when ctx has ended and nothing of a pod is left: no process, no mount, no control group.
// Clean removes what a killed run has left. All that it keeps is in one folder. It never touches what is not its own: the
// machine's containerd, another kubelet's pods, the machine's network.
package node
