// Package profiles runs the controllers of credence-server profiles: what becomes of ServiceAccountProfiles, and what namespaces have
// from the beginning. In go objects of the workload cluster, out come their status, Events, and what a controller does about pods and
// namespaces. It holds no private key, reads no Secret, and writes no spec of a profile.
package profiles
