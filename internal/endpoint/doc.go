// Package endpoint has the places where programs of one machine serve each other: unix sockets, and named pipes of Windows. In goes an
// endpoint as kubelets have it; out come listeners that only this user's processes and administrators reach, connections to them, or an
// error that names what is in the way. It never removes a socket that a process listens on, nor a file of another kind, and has no network.
package endpoint
