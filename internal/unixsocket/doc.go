// Package unixsocket has the unix sockets that programs serve on. In goes a path; out comes a listener that only this user's processes
// reach, or an error that names what is in the way. It never removes a socket that a process listens on, nor a file of another kind.
package unixsocket
