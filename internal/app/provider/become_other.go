//go:build !unix

package provider

// become runs a program in the place of this process, where the system cannot replace one by another.
func become(program string, args []string) (int, error) { return between(program, args) }
