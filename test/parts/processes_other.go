//go:build unix && !linux

package main

// killAll does nothing: planes are stopped by their folder, and only Linux has nodes.
func killAll(string) error { return nil }

func unmountBelow(string) error { return nil }
