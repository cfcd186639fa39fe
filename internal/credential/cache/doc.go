// Package cache keeps private files in a folder, one for each key, for short-lived processes of one user. In go keys
// and bytes; out come the bytes, whole or not at all, a lock for each key that dies with its process, and marks: which client
// was served which content. It never uses a folder or a file that others could have written, never follows a symbolic link,
// and never interprets the bytes.
package cache
