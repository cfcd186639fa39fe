// Package profiles wires the program credence-server profiles: what becomes of the profiles of service accounts, and what namespaces
// have from the beginning. In go flags, out comes a process that looks after them while it is the leader. It decides nothing itself
// (package profiles and those below it do), and holds no key.
package profiles
