// Package keptfile keeps a credential in a file, for programs that read one. In go the path of the file and a way to get credentials; the
// file always has a whole credential, of mode 0600, which is replaced before it expires. It gets no credential itself, never removes the
// file, because of an outage, a refusal or an expiry, and never logs what is in it.
package keptfile
