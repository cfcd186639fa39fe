package connection

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/relyingparty"
)

// CAFileHelp is the help of the flag --ca-file.
const CAFileHelp = "A PEM file of the certificate authorities to trust for the issuer; default: those of this machine"

// DocumentsClient returns a client for public documents that trusts the authorities of the flag --ca-file, or those of
// this machine.
func DocumentsClient(cmd *cobra.Command, caFile string) (*http.Client, error) {
	if !cmd.Flags().Changed("ca-file") {
		return relyingparty.Trusting(nil), nil
	}
	roots, err := ReadAuthorities(caFile)
	if err != nil {
		return nil, command.Usage(cmd, "--ca-file: "+err.Error())
	}
	return relyingparty.Trusting(roots), nil
}

// ReadAuthorities reads a file of certificates.
func ReadAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return roots, nil
}
