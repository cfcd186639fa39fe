package cli

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/spf13/cobra"
)

const caFileHelp = "A PEM file of the certificate authorities to trust for the issuer; default: those of this machine"

// documentsClient returns a client for public documents that trusts the authorities of the flag --ca-file, or those of
// this machine.
func documentsClient(cmd *cobra.Command, caFile string) (*http.Client, error) {
	if !cmd.Flags().Changed("ca-file") {
		return trusting(nil), nil
	}
	roots, err := readAuthorities(caFile)
	if err != nil {
		return nil, usageFailure(cmd, "--ca-file: "+err.Error())
	}
	return trusting(roots), nil
}

// trusting returns a client that trusts these authorities; nil: those of this machine.
func trusting(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2: true,
	}}
}
