// Package command is the command line of credence-devcluster.
//
// In go arguments and the two output streams; out comes a command whose error
// is one line for a person. It decides nothing about the cluster.
package command
