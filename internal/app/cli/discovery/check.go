package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/comparison"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/wording"
)

// check is "discovery check": it compares what is public with what should be.
type check struct {
	*screen.Terminal

	issuer, from, documentsDir, caFile, output string
}

func newCheck(terminal *screen.Terminal) *cobra.Command {
	c := &check{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "check URL (--from URL | --documents-dir DIR)",
		Short: "Compare the documents that a public URL serves with those that should be published",
		Long: `Fetch the discovery document and the key set from a public URL, as relying parties
do, and compare them byte by byte with what should be published: what another
server has (--from), or a folder (--documents-dir): one that "credence discovery
export" or the API server's --publish-dir wrote. Differences are printed in words:
which keys are missing or should not be there, then members, then bytes.

Exit codes: 0 the same, 1 different or missing, 2 wrong usage, 3 a server could not
be reached, so that nothing is known.`,
		Example: `  credence discovery check https://identity.example.com --documents-dir site
  credence discovery check https://identity.example.com --from https://discovery.credence-system.svc:8443`,
		Args:              command.ExactlyOne("the public https URL"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&c.issuer, "issuer", "", "The https URL of the issuer, if the checked URL is another one, such as one edge of a CDN; default: the checked URL")
	cmd.Flags().StringVar(&c.from, "from", "", "The https URL of a server that has what should be published; URL/jwks is the key set")
	cmd.Flags().StringVar(&c.documentsDir, "documents-dir", "", "A folder with what should be published")
	cmd.Flags().StringVar(&c.caFile, "ca-file", "", connection.CAFileHelp)
	command.Output(cmd, &c.output, "What to print: text, json or yaml", "text", "json", "yaml")
	command.CompleteFlag(cmd, "issuer", cobra.NoFileCompletions)
	command.CompleteFlag(cmd, "from", cobra.NoFileCompletions)
	command.CompleteFlag(cmd, "documents-dir", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	return cmd
}

func (c *check) run(cmd *cobra.Command, argument string) error {
	public, client, err := c.public(cmd, argument)
	if err != nil {
		return err
	}
	stop := c.WaitingFor("the documents")
	defer stop()
	want, err := c.expected(cmd, client, public.issuer)
	if err != nil {
		return err
	}
	result := comparisonReport{URL: public.location, Keys: want.KeyIDs()}
	served, err := comparison.Fetch(cmd.Context(), client, public.location)
	if err != nil {
		failed := fetchFailure(err)
		if failed.Code == command.ExitOutage {
			return failed
		}
		fetch, _ := errors.AsType[*comparison.FetchError](err)
		result.Differences = []comparison.Difference{{Document: documentAt(fetch.URL), Detail: "is not there: " + fetch.Err.Error()}}
	} else {
		result.Differences = comparison.Compare(
			comparison.Documents{Configuration: want.Configuration(), JWKS: want.JWKS()}, served.Documents())
	}
	result.Same = len(result.Differences) == 0
	if err := c.print(result); err != nil {
		return err
	}
	if !result.Same {
		return &command.Failure{Code: command.ExitRefused}
	}
	return nil
}

func documentAt(address string) string { return address[strings.LastIndex(address, "/")+1:] }

// public returns where the public documents are, and whose they are.
func (c *check) public(cmd *cobra.Command, argument string) (documentsPlace, *http.Client, error) {
	var where documentsPlace
	location, err := identity.ParseIssuer(argument)
	if err != nil {
		return where, nil, command.Usage(cmd, "the URL to check: "+strings.TrimPrefix(err.Error(), "issuer "))
	}
	where.location, where.issuer = string(location), location
	if cmd.Flags().Changed("issuer") {
		if where.issuer, err = issuerFlag(cmd, "issuer", c.issuer); err != nil {
			return where, nil, err
		}
	}
	switch {
	case c.from == "" && c.documentsDir == "":
		return where, nil, command.Usage(cmd, "no documents to compare with: give --from or --documents-dir")
	case c.from != "" && c.documentsDir != "":
		return where, nil, command.Usage(cmd, "--from and --documents-dir exclude each other: give one of them")
	}
	client, err := connection.DocumentsClient(cmd, c.caFile)
	return where, client, err
}

// expected returns what should be published.
func (c *check) expected(cmd *cobra.Command, client *http.Client, issuer identity.Issuer) (discovery.Documents, error) {
	if c.from != "" {
		return c.expectedFrom(cmd.Context(), cmd, documentsPlace{client: client, issuer: issuer})
	}
	configuration, jwks, err := readDocuments(c.documentsDir, issuer)
	if err != nil {
		return discovery.Documents{}, command.Usage(cmd, "--documents-dir: "+err.Error())
	}
	documents, err := discovery.Parse(issuer, configuration, jwks)
	if err != nil {
		return discovery.Documents{}, command.Usage(cmd, fmt.Sprintf("--documents-dir: the documents in %s are not those of %s: %v", c.documentsDir, issuer, err))
	}
	return documents, nil
}

func (c *check) expectedFrom(ctx context.Context, cmd *cobra.Command, where documentsPlace) (discovery.Documents, error) {
	from, err := issuerFlag(cmd, "from", c.from)
	if err != nil {
		return discovery.Documents{}, err
	}
	where.location = string(from)
	_, documents, err := fetched(ctx, where)
	return documents, err
}

// readDocuments reads a folder of either layout: the names that the API server and the discovery server use, or the paths
// of the issuer's URL.
func readDocuments(folder string, issuer identity.Issuer) (configuration, jwks []byte, err error) {
	names := [2]string{discovery.ConfigurationKey, discovery.JWKSKey}
	if _, err := os.Stat(filepath.Join(folder, discovery.JWKSKey)); errors.Is(err, os.ErrNotExist) {
		path := filepath.FromSlash(issuer.Path())
		names = [2]string{filepath.Join(path, ".well-known", "openid-configuration"), filepath.Join(path, "jwks")}
	}
	if configuration, err = readDocument(filepath.Join(folder, names[0])); err != nil {
		return nil, nil, err
	}
	jwks, err = readDocument(filepath.Join(folder, names[1]))
	return configuration, jwks, err
}

// readDocument reads one byte more than a document may have, so that one that is too large is seen.
func readDocument(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, discovery.MaxDocumentBytes+1))
}

// comparisonReport is the JSON form of a comparison.
type comparisonReport struct {
	URL         string                  `json:"url"`
	Same        bool                    `json:"same"`
	Keys        []identity.KeyID        `json:"keys"` // that should be published
	Differences []comparison.Difference `json:"differences,omitempty"`
}

func (c *check) print(result comparisonReport) error {
	if c.output != "text" {
		return screen.Object(c.Out, c.output, result)
	}
	var text strings.Builder
	if result.Same {
		fmt.Fprintf(&text, "the same: %s serves what should be published\n", result.URL)
		for _, key := range result.Keys {
			fmt.Fprintf(&text, "key %s\n", key)
		}
	} else {
		fmt.Fprintf(&text, "different: %s does not serve what should be published\n", result.URL)
	}
	for _, difference := range result.Differences {
		fmt.Fprintf(&text, "%s: %s\n", difference.Document, difference.Detail)
	}
	_, err := io.WriteString(c.Out, wording.Printable(text.String()))
	return err
}
