// Package kubeconfig writes the files by which clients find the API server.
//
// In go the server's URL, and its authority and a client certificate as PEM files;
// out comes one self-contained kubeconfig (mode 0600). It never refers to
// another file, so it can be copied, and never turns verification off.
package kubeconfig

import (
	"bytes"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/devcluster/internal/pki"
	"github.com/credence-id/credence/devcluster/internal/state"
)

// Context is the name of the one context, and cluster, in a file.
const Context = "credence"

// WriteAddress makes the kubeconfig at path lead to server without credentials.
func WriteAddress(path, server, authority string) error {
	return Write(path, server, "", authority, pki.Pair{})
}

// Write makes the kubeconfig at path lead to server as user. A file that
// already does is left alone.
func Write(path, server, user, authority string, client pki.Pair) error {
	content, err := render(server, user, authority, client)
	if err != nil {
		return fmt.Errorf("make kubeconfig %s: %w", path, err)
	}
	if current, err := os.ReadFile(path); err == nil && bytes.Equal(current, content) {
		return nil
	}
	return state.WriteFile(path, content, 0o600)
}

func render(server, user, authority string, client pki.Pair) ([]byte, error) {
	ca, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{Context: {Server: server, CertificateAuthorityData: ca}},
		Contexts:       map[string]*clientcmdapi.Context{Context: {Cluster: Context, AuthInfo: user}},
		CurrentContext: Context,
	}
	if user == "" {
		return clientcmd.Write(config)
	}
	cert, err := os.ReadFile(client.Cert)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(client.Key)
	if err != nil {
		return nil, err
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: cert, ClientKeyData: key}}
	return clientcmd.Write(config)
}
