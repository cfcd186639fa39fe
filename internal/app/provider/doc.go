// Package provider wires the sources of exec credentials to command lines. In goes a command line SOURCE [ARGUMENT] [FLAGS],
// as a kubeconfig's user names it; out comes the source, with the times that its provider needs. The command line of Credence
// and the small program credence-credential both read it here, so that both know what is kept by the same key. Run is the small
// program: it serves what is kept and fresh, and replaces itself by credence for everything else. The small program never calls
// a network, never writes a credential to disk, and holds nothing of the libraries of Kubernetes.
package provider
