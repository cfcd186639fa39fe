// Package documents runs what the documents of the repository tell their readers to type.
//
// In go Markdown files with console blocks, and where a reader would sit; out come test failures for commands that fail, or print
// something else than the document has. It never decides which blocks a test can run: a word after "console" names what they need.
package documents
