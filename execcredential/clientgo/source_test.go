package clientgo_test

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
)

func TestConfigForASource(t *testing.T) {
	server := newAPIServer(t)
	pool, _ := newPool(t, execcredential.Options{})
	pair := need(tls.X509KeyPair(pemPair(server.authority.Issue("device", start.Add(-time.Hour), start.Add(time.Hour)))))(t)
	source := pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) {
		return execcredential.NewCredential(execcredential.Material{Token: "token", Certificate: &pair}, start)
	}))
	plain := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: server.authority.PEM()}}
	config := need(clientgo.ConfigFor(source, plain))(t)
	if plain.WrapTransport != nil {
		t.Error("the config that went in was changed")
	}
	body, _, err := get(clientOf(t, config), server.URL)
	if err != nil || !strings.Contains(body, `"name":"device"`) || !strings.Contains(body, `"token":"Bearer token"`) {
		t.Errorf("the server saw %s, error %v", body, err)
	}
}

// A client's identity must not depend on which of two credentials wins.
func TestConfigForRefusesOtherCredentials(t *testing.T) {
	pool, _ := newPool(t, execcredential.Options{})
	source := pool.SourceOf(execcredential.ProviderFunc(nil))
	for what, c := range map[string]*rest.Config{
		"program":     {ExecProvider: &api.ExecConfig{Command: "x"}},
		"plugin":      {AuthProvider: &api.AuthProviderConfig{Name: "x"}},
		"token":       {BearerToken: "x"},
		"token file":  {BearerTokenFile: "x"},
		"password":    {Username: "x"},
		"certificate": {TLSClientConfig: rest.TLSClientConfig{CertFile: "x"}},
		"key":         {TLSClientConfig: rest.TLSClientConfig{KeyData: []byte("x")}},
	} {
		if _, err := clientgo.ConfigFor(source, c); err == nil || !strings.Contains(err.Error(), "credentials of its own") {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

func pemPair(certificate, key string) ([]byte, []byte) { return []byte(certificate), []byte(key) }
