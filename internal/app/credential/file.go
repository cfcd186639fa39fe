package credential

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/file"
)

type tokenFile struct{ path string }

func fileFlags(flags *pflag.FlagSet) Settings {
	f := &tokenFile{}
	flags.StringVar(&f.path, "path", "", "The file with the token; it is read anew each time")
	return f
}

func (f *tokenFile) Choose(_ []string, place Place, ask credential.Ask) (Chosen, error) {
	if f.path == "" {
		return Chosen{}, missing("path")
	}
	path, err := absolute("path", f.path, ask)
	return Chosen{Source: &file.Source{Path: path, Now: place.Now}}, err
}

func missing(flag string) error { return fmt.Errorf("--%s is missing", flag) }

func wrongTime(flag string, d time.Duration) error {
	return fmt.Errorf("--%s is %s: it must be longer than 0", flag, d)
}
