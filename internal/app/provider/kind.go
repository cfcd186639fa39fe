package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
	"github.com/credence-id/credence/internal/credential/tokenexchange"
	"github.com/credence-id/credence/internal/credential/workloadidentity"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

// Kind is a kind of source, as a command line names it.
type Kind struct {
	// Name is the word of the command line.
	Name string
	// Argument is the name of the argument that follows; empty: no argument.
	Argument string
	// Lines is true if the arguments are command lines of other sources, with -- before each.
	Lines bool
	// Kubeconfig is true if the source calls the cluster of a kubeconfig, which is chosen by flags.
	Kubeconfig bool
	// Person is true if a person may have to act.
	Person bool
	// Browser reports that a person logs in on a page, which a browser shows.
	Browser bool
	// Unkept is true if nothing of it is kept, so that there is nothing to log in to.
	Unkept bool
	// Files are the flags that name files.
	Files []string
	// Flags adds the flags of the source to those of a command line.
	Flags func(*pflag.FlagSet) Settings
}

// Kinds are all kinds of sources, in the order of the documentation.
func Kinds() []Kind {
	return []Kind{
		{Name: "workload-identity", Argument: "NAME", Kubeconfig: true, Flags: workloadIdentityFlags},
		{Name: "oidc", Person: true, Browser: true, Files: []string{"ca-file", "client-secret-file"}, Flags: oidcFlags},
		{Name: "client-certificate", Kubeconfig: true, Person: true, Flags: clientCertificateFlags},
		{Name: "token-exchange", Files: []string{"ca-file", "client-secret-file", "subject-token-file"}, Flags: tokenExchangeFlags},
		{Name: "file", Unkept: true, Files: []string{"path", "folder"}, Flags: fileFlags},
		{Name: "in-order", Lines: true, Person: true, Flags: inOrderFlags},
	}
}

// Settings are the values of a source's flags, once they are parsed.
type Settings interface {
	// Choose returns the source that they name, or what is wrong with them. It makes no calls.
	Choose(args []string, place Place, info credential.ExecInfo) (Chosen, error)
}

// Place is where a command line is read.
type Place struct {
	// Kubeconfig, Context and Namespace are the flags of these names.
	Kubeconfig, Context, Namespace string
	// CacheFolder is the flag of that name.
	CacheFolder string
	// Environment looks up a variable; required.
	Environment func(string) string
	// Home is the user's folder, and Program the path of this program; empty: not known.
	Home, Program string
	// Now is the clock; required.
	Now func() time.Time
	// Network is the way to others; zero where only the key is of interest.
	Network Network
}

// Network is how the sources reach others.
type Network struct {
	Tokens       workloadidentity.Connect
	Certificates clientcertificate.Connect
	Exchange     tokenexchange.Poster
	OpenID       func(settings.Settings, func() time.Time) (credential.Source, error)
}

// Here is the place of this process.
func Here(now func() time.Time) Place {
	home, _ := os.UserHomeDir()
	program, _ := os.Executable()
	return Place{Environment: os.Getenv, Home: home, Program: program, Now: now}
}

func (p Place) access(info credential.ExecInfo) (kubeconfig.Access, error) {
	path, err := absolute("kubeconfig", p.Kubeconfig, info)
	if err != nil {
		return kubeconfig.Access{}, err
	}
	return kubeconfig.Choice{Path: path, Context: p.Context, Environment: p.Environment, Home: p.Home, Program: p.Program}.Read()
}

// Chosen is a source with what its provider must know.
type Chosen struct {
	credential.Source
	// Margin, LockTimeout, CostsPerson and Alternatives are those of credential.Provider; 0: its defaults.
	Margin, LockTimeout time.Duration
	CostsPerson         bool
	Alternatives        int
}

// Provider returns the provider for the source and an ask. folder is empty for the default one; without one, nothing is kept.
func (c Chosen) Provider(folder string, info credential.ExecInfo, now func() time.Time, terminal credential.Terminal) (*credential.Provider, error) {
	folder, err := absolute("cache-folder", folder, info)
	if err != nil {
		return nil, err
	}
	if folder, err = Folder(folder); err != nil {
		terminal.Notice("nothing can be kept: %v", err)
	}
	return &credential.Provider{
		Folder: folder, Now: now, Caller: credential.Client(os.Getenv), Terminal: terminal,
		Margin: c.Margin, LockTimeout: c.LockTimeout, CostsPerson: c.CostsPerson, Alternatives: c.Alternatives,
	}, nil
}

// Folder is the folder where credentials are kept: the one that is given, or the user's.
func Folder(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	folder, err := cache.DefaultPath()
	if err != nil {
		return "", fmt.Errorf("%w: set one, or give --cache-folder", err)
	}
	return folder, nil
}

// absolute returns the path that a flag names. A client may start the program anywhere: which file is meant must not depend
// on the working directory, nor on its owner.
func absolute(flag, path string, info credential.ExecInfo) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	if info.FromClient {
		return "", fmt.Errorf("--%s %s is not an absolute path: a client runs this program in whichever folder it is in itself", flag, path)
	}
	return filepath.Abs(path)
}

// configuration is the cluster's own configuration in the kubeconfig, or nil.
func configuration(info credential.ExecInfo) []byte {
	if info.Cluster == nil {
		return nil
	}
	return info.Cluster.Config
}
