// Package state is the directory that one devcluster lives in.
//
// In goes a path; out comes the directory, held by this process alone until
// Close, and a way to write files into it that a crash never leaves half
// written. It never reads a file and knows nothing of what the files mean.
package state
