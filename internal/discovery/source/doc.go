// Package source brings the discovery documents, and the certificate that they are served with, from where they are kept:
// files, or one ConfigMap. In go paths or a name, and a feed; out come documents and certificates, again on every
// change. It never writes what it watches, never reads a Secret, and never withdraws documents that are served already.
package source
