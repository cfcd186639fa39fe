package credential

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/keptfile"
)

// keptFile is "credential SOURCE --keep FILE": the credential stays in a file, for programs that read one.
type keptFile struct{ path string }

const keepHelp = ` With --keep FILE it prints nothing, but keeps the
credential in FILE (mode 0600) for programs that read one, and runs until it is
terminated: a token alone, or a certificate followed by its key, in PEM. A new one is
written well before the end of the old one, which stays if none can be had.`

func (k *keptFile) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&k.path, "keep", "", "A file in which the credential is kept, for programs that read one; this program then runs until it is terminated")
}

func (k *keptFile) run(s *source, cmd *cobra.Command, args []string) error {
	if !cmd.Flags().Changed("keep") {
		return s.print(cmd, args)
	}
	info, err := provider.ExecInfo()
	switch {
	case err == nil && info.FromClient:
		err = errors.New("--keep is not for the program of a kubeconfig: the client would wait for it without end")
	case k.path == "":
		err = errors.New("--keep is empty")
	case err == nil:
		k.path, err = filepath.Abs(k.path)
	}
	if err != nil {
		return command.Usage(cmd, err.Error())
	}
	service, err := notifySocket(os.Getenv)
	if err != nil {
		return command.Usage(cmd, err.Error())
	}
	info.Interactive = false
	_, err = s.serve(cmd, args, info, func(from *credential.Provider, ctx context.Context, source credential.Source, info credential.ExecInfo) (credential.Credential, error) {
		keeper := keptfile.Keeper{
			Path: k.path, Lead: from.Margin, Now: s.Now, Random: rand.Float64, Pause: credential.Pause,
			Get: func(ctx context.Context, newerThan time.Time) (credential.Credential, error) {
				each := *from
				each.Margin, each.NewerThan = -1, newerThan
				return each.Serve(ctx, source, info)
			},
			Final: func(err error) bool {
				code := command.ExitCode(s.failed(cmd, args, info, err))
				return code == command.ExitRefused || code == command.ExitUsage
			},
			Notice: func(format string, args ...any) {
				from.Terminal.Notice(format, args...)
				service.send("STATUS=" + credential.Plain(fmt.Sprintf(format, args...), maxStatus))
			},
			Ready: func() { service.send("READY=1") },
		}
		err := keeper.Run(ctx)
		service.send("STOPPING=1")
		return credential.Credential{}, err
	})
	return err
}
