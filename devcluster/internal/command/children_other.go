//go:build !linux

package command

import "github.com/spf13/cobra"

// children is empty: there are no nodes on this system.
func children() []*cobra.Command { return nil }
