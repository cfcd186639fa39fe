// Package credential is "credence credential", "login", "logout", "whoami" and "kubeconfig": credentials for clients of clusters. In go the
// words that name a source, and the request of a client; out come an ExecCredential, or an entry of a kubeconfig. Only "credential"
// prints a credential. A browser is opened for a person alone, by commands that a kubeconfig cannot choose.
package credential
