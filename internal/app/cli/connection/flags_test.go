package connection

import (
	"testing"

	"k8s.io/client-go/rest"
)

// A server that sees a client certificate does not look at a token: a test of what a token may do must not act as the
// administrator whose certificate is in the kubeconfig.
func TestATokenIsTheOnlyCredential(t *testing.T) {
	got := tokenOnly(&rest.Config{
		Host: "https://api.example", BearerToken: "token", BearerTokenFile: "file", Username: "u", Password: "p",
		TLSClientConfig: rest.TLSClientConfig{CAFile: "ca", ServerName: "name", CertFile: "cert", KeyFile: "key", CertData: []byte("c"), KeyData: []byte("k")},
		Impersonate:     rest.ImpersonationConfig{UserName: "jane"},
	})
	if got.BearerToken != "token" || got.CAFile != "ca" || got.ServerName != "name" || got.Host != "https://api.example" || got.Impersonate.UserName != "jane" {
		t.Errorf("lost what is needed: %v", got)
	}
	if got.BearerTokenFile != "" || got.Username != "" || got.Password != "" || got.CertFile != "" || got.KeyFile != "" || got.CertData != nil || got.KeyData != nil {
		t.Errorf("kept another credential: %v", got)
	}
}
