//go:build !linux

package node

import "context"

// Check is an error: there can be no node here.
func Check(string) error { return ErrElsewhere }

// Supervise is an error: there can be no node here.
func Supervise(context.Context, Settings) error { return ErrElsewhere }

// Clean has nothing to do where there was no node.
func Clean(context.Context, string) error { return nil }

// Load is an error: there can be no node here.
func Load(context.Context, string, string, string, ...string) (string, error) {
	return "", ErrElsewhere
}

// Import is an error: there can be no node here.
func Import(context.Context, string, string) ([]string, error) { return nil, ErrElsewhere }
