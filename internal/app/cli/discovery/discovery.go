package discovery

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/comparison"
	"github.com/credence-id/credence/internal/identity"
)

// New is "discovery".
func New(terminal *screen.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "discovery COMMAND",
		Short: "Export the discovery documents for another server, and compare what is published",
	}
	cmd.AddCommand(newExport(terminal), newCheck(terminal))
	return command.Group(cmd)
}

// fetched returns what a location serves for an issuer, checked as the discovery server checks what it serves.
func fetched(ctx context.Context, where documentsPlace) (comparison.Served, discovery.Documents, error) {
	served, err := comparison.Fetch(ctx, where.client, where.location)
	if err != nil {
		return comparison.Served{}, discovery.Documents{}, fetchFailure(err)
	}
	documents, err := discovery.Parse(where.issuer, served.Configuration.Body, served.JWKS.Body)
	if err != nil {
		return comparison.Served{}, discovery.Documents{}, &command.Failure{
			Line: fmt.Sprintf("error: the documents of %s cannot be published: %v", where.location, err),
			Hint: "see what is wrong with them: credence relying-party check --issuer " + string(where.issuer),
			Code: command.ExitRefused, Err: err,
		}
	}
	return served, documents, nil
}

// fetchFailure is an outage where nothing is known, and a refusal where a server has no document to give.
func fetchFailure(err error) *command.Failure {
	failed := &command.Failure{
		Line: "error: " + err.Error(),
		Hint: "check that the server runs and can be reached from here",
		Code: command.ExitOutage, Err: err,
	}
	if fetch, ok := errors.AsType[*comparison.FetchError](err); ok && !fetch.Outage() {
		failed.Code = command.ExitRefused
		failed.Hint = "the documents are at ISSUER/jwks and ISSUER/.well-known/openid-configuration: check the URL, and its path"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		failed.Hint = "the certificate is not of an authority that is trusted here: name one by --ca-file FILE"
	}
	return failed
}

// issuerFlag reads a flag whose value must have the form of an issuer.
func issuerFlag(cmd *cobra.Command, name, value string) (identity.Issuer, error) {
	issuer, err := identity.ParseIssuer(value)
	if err != nil {
		return "", command.Usage(cmd, fmt.Sprintf("--%s: %v", name, err))
	}
	return issuer, nil
}
