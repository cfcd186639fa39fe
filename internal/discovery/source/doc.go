// Package source brings the discovery documents, and the certificate that they are served with, from where they are kept:
// files, or one ConfigMap. In go paths or a name, and who publishes; out come documents and certificates, again on every
// change. It never writes what it watches, never asks for a Secret, and never takes away what is served already.
package source
