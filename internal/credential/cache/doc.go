// Package cache keeps private files in a folder, one for each key, for processes of one user that come and go. In go keys
// and bytes; out come the bytes, whole or not at all, a lock for each key that dies with its process, and marks: who was
// seen with which content. It never uses a folder or a file that others could have written, never follows a symbolic link,
// and never knows what the bytes mean.
package cache
