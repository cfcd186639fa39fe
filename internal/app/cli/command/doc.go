// Package command holds what all commands have in common: their failures with exit codes and hints, the checks of their arguments, and
// the files that they read. In go the command line and errors; out comes what the user is to see. It talks to no cluster.
package command
