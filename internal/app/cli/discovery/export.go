package discovery

import (
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/comparison"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/wording"
)

// documentsPlace is a location on the web with the documents of an issuer.
type documentsPlace struct {
	client   *http.Client
	issuer   identity.Issuer
	location string // the URL of the issuer, or another one with the same layout
}

// export is "discovery export": it writes the documents for a bucket or a static server.
type export struct {
	*screen.Terminal

	issuer, from, caFile, output string
}

func newExport(terminal *screen.Terminal) *cobra.Command {
	e := &export{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "export DIR --issuer URL",
		Short: "Write the discovery documents to a folder, for a bucket, a CDN or any static server",
		Long: `Fetch the discovery document and the key set of an issuer, check them as strictly
as its discovery server does, and write them to DIR under the path of the issuer's
URL, so that the folder can be served, or synchronized to a bucket, as it is:

  DIR/PATH/.well-known/openid-configuration
  DIR/PATH/jwks

A file that is the same already is not touched. The output lists with which content type
and Cache-Control each file must be served with: the path has no file extension
from which a server could derive it. Run it again whenever the keys change, before the
new ones sign; "credence discovery check" checks that the served documents are current.

Exit codes: 0 written or the same already, 1 the documents are refused or missing,
2 wrong usage, 3 they could not be fetched.`,
		Example: `  credence discovery export site --issuer https://identity.example.com
  aws s3 sync site s3://my-bucket

  # From the discovery server itself, where the issuer's URL leads to the bucket
  credence discovery export site --issuer https://identity.example.com --from https://discovery.credence-system.svc:8443`,
		Args: command.ExactlyOne("the folder to write to"),
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd, args[0]) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().StringVar(&e.issuer, "issuer", "", "The https URL of the issuer; required")
	cmd.Flags().StringVar(&e.from, "from", "", "The https URL to fetch from, which stands for the issuer's: URL/jwks is the key set; default: the issuer's")
	cmd.Flags().StringVar(&e.caFile, "ca-file", "", connection.CAFileHelp)
	command.Output(cmd, &e.output, "What to print: text, json or yaml", "text", "json", "yaml")
	command.CompleteFlag(cmd, "issuer", cobra.NoFileCompletions)
	command.CompleteFlag(cmd, "from", cobra.NoFileCompletions)
	return cmd
}

func (e *export) run(cmd *cobra.Command, folder string) error {
	where, err := e.place(cmd)
	if err != nil {
		return err
	}
	stop := e.WaitingFor("the issuer's documents")
	served, documents, err := fetched(cmd.Context(), where)
	stop()
	if err != nil {
		return err
	}
	files, err := writeSite(folder, staticSite(documents, served))
	if err != nil {
		return &command.Failure{Line: "error: " + err.Error(), Hint: "check the folder, its rights and its space, and run the command again", Code: command.ExitRefused, Err: err}
	}
	if e.output != "text" {
		return screen.Object(e.Out, e.output, struct {
			Issuer identity.Issuer  `json:"issuer"`
			Keys   []identity.KeyID `json:"keys"`
			Files  []siteFile       `json:"files"`
		}{where.issuer, documents.KeyIDs(), files})
	}
	return printSite(e.Out, files)
}

func (e *export) place(cmd *cobra.Command) (where documentsPlace, err error) {
	if e.issuer == "" {
		return where, command.Usage(cmd, "--issuer is missing: give the https URL of the issuer")
	}
	if where.issuer, err = issuerFlag(cmd, "issuer", e.issuer); err != nil {
		return where, err
	}
	where.location = string(where.issuer)
	if cmd.Flags().Changed("from") {
		from, err := issuerFlag(cmd, "from", e.from)
		if err != nil {
			return where, err
		}
		where.location = string(from)
	}
	where.client, err = connection.DocumentsClient(cmd, e.caFile)
	return where, err
}

// staticSite lists the files of a static server for the documents, the key set first: a key that is there before the
// configuration lists its algorithm is harmless, the other order is not.
func staticSite(documents discovery.Documents, served comparison.Served) []siteFile {
	path := documents.Issuer().Path()
	return []siteFile{
		newSiteFile(path+"/jwks", documents.JWKS(), "application/jwk-set+json", served.JWKS),
		newSiteFile(path+"/.well-known/openid-configuration", documents.Configuration(), "application/json", served.Configuration),
	}
}

func newSiteFile(path string, content []byte, contentType string, served comparison.Answer) siteFile {
	file := siteFile{Path: path, content: content, ContentType: contentType, CacheControl: served.CacheControl}
	if file.CacheControl == "" {
		file.CacheControl = fmt.Sprintf("public, max-age=%d", int(discovery.DefaultMaxAge.Seconds()))
	}
	return file
}

func printSite(w io.Writer, files []siteFile) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "FILE\tCONTENT-TYPE\tCACHE-CONTROL\tRESULT")
	for _, file := range files {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", wording.Printable(file.File), file.ContentType, wording.Printable(file.CacheControl), file.Result)
	}
	return table.Flush()
}
