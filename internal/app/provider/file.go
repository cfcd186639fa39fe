package provider

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/file"
)

type tokenFile struct{ settings file.Settings }

func fileFlags(flags *pflag.FlagSet) Settings {
	f := &tokenFile{}
	flags.StringVar(&f.settings.Path, "path", "", "The file with the token; it is read anew each time")
	flags.StringVar(&f.settings.Folder, "folder", "", "A folder of such files, of which the cluster's own configuration names one")
	return f
}

func (f *tokenFile) Choose(_ []string, place Place, info credential.ExecInfo) (Chosen, error) {
	path, err := f.settings.WithCluster(configuration(info))
	if err != nil {
		return Chosen{}, err
	}
	if path == "" {
		return Chosen{}, missing("path")
	}
	flag := "path"
	if f.settings.Folder != "" {
		flag = "folder"
	}
	path, err = absolute(flag, path, info)
	return Chosen{Source: &file.Source{Path: path, Now: place.Now}}, err
}

func missing(flag string) error { return fmt.Errorf("--%s is missing", flag) }

func wrongTime(flag string, d time.Duration) error {
	return fmt.Errorf("--%s is %s: it must be longer than 0", flag, d)
}
