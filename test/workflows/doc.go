// Package workflows tests the workflows of the public forge: by the linter of GitHub's format, and against the Makefile.
package workflows
