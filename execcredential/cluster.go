package execcredential

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Transport returns the connections that c describes, without credentials: its certificate authorities, the name in its certificate,
// its proxy. It is for Source.Transport. Errors are *ConfigError.
func (c Cluster) Transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   25,
		ForceAttemptHTTP2:     true,
		DisableCompression:    c.DisableCompression,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ServerName:         c.TLSServerName,
			InsecureSkipVerify: c.InsecureSkipTLSVerify,
		},
	}
	if len(c.CertificateAuthorityData) > 0 {
		if c.InsecureSkipTLSVerify {
			return nil, &ConfigError{Field: "cluster.insecure-skip-tls-verify", Reason: "is set beside certificate-authority-data, which would not be used; remove one of them"}
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(c.CertificateAuthorityData) {
			return nil, &ConfigError{Field: "cluster.certificate-authority-data", Reason: "has no certificate in PEM"}
		}
	}
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil || proxy.Host == "" {
			return nil, &ConfigError{Field: "cluster.proxy-url", Reason: "is not a URL"}
		}
		switch proxy.Scheme {
		case "http", "https", "socks5":
		default:
			return nil, &ConfigError{Field: "cluster.proxy-url", Reason: fmt.Sprintf("has the scheme %q; use http, https or socks5", clip(proxy.Scheme))}
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	return t, nil
}
