// Package backup has the backups of an installation: their file format, and what restoring one into a cluster would do. In go objects as a
// cluster has them, or the bytes of a file; out come the bytes of a file, or what to create. It reads and writes nothing by itself.
package backup
