// Package cri converts security contexts of Linux containers to and from messages of the Container Runtime Interface v1, for what decides
// about the messages of a kubelet. In go security contexts, messages, and the settings of the node; out come contexts, messages, or an
// error with the correction. Nothing but SetLinux changes its inputs, and messages share nothing with what they are made of.
package cri
