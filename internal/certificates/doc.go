// Package certificates decides which serving certificates and authorities must be made now. In go what is stored, what must be there,
// settings and the time, out comes a plan, and when to look again. It is pure: it makes no key, and reads and writes no object.
package certificates
