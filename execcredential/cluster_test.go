package execcredential_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func TestClusterTransport(t *testing.T) {
	server := serve(t, true, all)
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		proxied++
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil })
	for name, c := range map[string]struct {
		cluster execcredential.Cluster
		err     string
	}{
		"authority":       {cluster: execcredential.Cluster{CertificateAuthorityData: server.authority.PEM()}},
		"other authority": {cluster: execcredential.Cluster{CertificateAuthorityData: exectest.NewAuthority(t).PEM()}, err: "unknown authority"},
		"system":          {cluster: execcredential.Cluster{}, err: "unknown authority"},
		"insecure":        {cluster: execcredential.Cluster{InsecureSkipTLSVerify: true}},
		"other name":      {cluster: execcredential.Cluster{CertificateAuthorityData: server.authority.PEM(), TLSServerName: "other.example"}, err: "other.example"},
		"proxy":           {cluster: execcredential.Cluster{CertificateAuthorityData: server.authority.PEM(), ProxyURL: proxy.URL}, err: "Forbidden"},
	} {
		base, err := c.cluster.Transport()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, _, err := get(&http.Client{Transport: source.Transport(base)}, server.URL)
		if c.err == "" && !strings.HasPrefix(got, "Bearer abc ") || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: the server saw %q, error %v", name, got, err)
		}
	}
	if proxied != 1 {
		t.Errorf("the proxy was called %d times", proxied)
	}
	for field, c := range map[string]execcredential.Cluster{
		"cluster.insecure-skip-tls-verify":   {InsecureSkipTLSVerify: true, CertificateAuthorityData: server.authority.PEM()},
		"cluster.certificate-authority-data": {CertificateAuthorityData: []byte("none")},
		"cluster.proxy-url":                  {ProxyURL: "ftp://proxy"},
	} {
		var typed *execcredential.ConfigError
		if _, err := c.Transport(); !errors.As(err, &typed) || typed.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
