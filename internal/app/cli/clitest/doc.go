// Package clitest runs command-line scripts in the test process: it holds the fakes of an issuer, of clusters and of documents
// that the scripts of all command families share.
package clitest
