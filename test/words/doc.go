// Package words holds the test of the repository's language: plain technical English in comments, strings and documents.
//
// In go the repository's Go files, Markdown documents, manifests and scripts; out come test failures with file, line and what to
// write instead. It never judges identifiers, testdata or generated files.
package words
