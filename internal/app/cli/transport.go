package cli

import (
	"crypto/tls"
	"net/http"

	"github.com/spf13/cobra"
)

const caFileHelp = "A PEM file of the certificate authorities to trust for the issuer; default: those of this machine"

// documentsClient returns a client for public documents that trusts the authorities of the flag --ca-file, or those of
// this machine.
func documentsClient(cmd *cobra.Command, caFile string) (*http.Client, error) {
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	if cmd.Flags().Changed("ca-file") {
		roots, err := readAuthorities(caFile)
		if err != nil {
			return nil, usageFailure(cmd, "--ca-file: "+err.Error())
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	return &http.Client{Transport: transport}, nil
}
