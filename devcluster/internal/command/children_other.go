//go:build !linux

package command

import "github.com/spf13/cobra"

// children are none: there are no nodes here.
func children() []*cobra.Command { return nil }
