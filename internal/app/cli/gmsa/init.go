package gmsa

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/gmsa/generate"
)

// initCommand is "gmsa init-container": it prints a container that tries a gMSA out before the others start.
type initCommand struct {
	*screen.Terminal

	container generate.Container
}

// serverCore has nltest.exe, which Nano Server has not.
const serverCore = "mcr.microsoft.com/windows/servercore:ltsc2022"

func newInit(terminal *screen.Terminal) *cobra.Command {
	i := &initCommand{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "init-container",
		Short: "Print an init container that keeps a pod from starting until its account works",
		Long: `Print an init container that tries the account of a pod out: whether the domain is
reached (nltest /query) and the container is the account (whoami /upn). Windows starts
a container also when its account does not work; with this one first, the pod stays
in Init:Error or Init:CrashLoopBackOff instead, and its log has the reason. The output
is an item of spec.initContainers, with what its failures mean.

The image must be of Windows Server Core, and fit the Windows of the nodes: Nano
Server has no nltest.exe.`,
		Example: `  credence gmsa init-container
  credence gmsa init-container --domain contoso.com --image mcr.microsoft.com/windows/servercore:ltsc2019

  # Where the credential spec is that of a container, and not of the pod
  credence gmsa init-container --credential-spec webapp1-credspec`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd) },
	}
	cmd.Flags().StringVar(&i.container.Name, "name", "verify-gmsa", "The name of the container")
	cmd.Flags().StringVar(&i.container.Image, "image", serverCore, "The image, of Windows Server Core")
	cmd.Flags().StringVar(&i.container.Domain, "domain", "", "The DNS name of the domain that the account must be of; default: any")
	cmd.Flags().StringVar(&i.container.CredentialSpec, "credential-spec", "", "The GMSACredentialSpec of the container; default: that of the pod")
	for _, flag := range []string{"name", "image", "domain", "credential-spec"} {
		command.CompleteFlag(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

func (i *initCommand) run(cmd *cobra.Command) error {
	if reasons := validation.IsDNS1123Label(i.container.Name); len(reasons) > 0 {
		return command.Usage(cmd, fmt.Sprintf("--name: %q cannot be the name of a container: %s", i.container.Name, reasons[0]))
	}
	if cmd.Flags().Changed("credential-spec") {
		if reasons := validation.IsDNS1123Subdomain(i.container.CredentialSpec); len(reasons) > 0 {
			return command.Usage(cmd, fmt.Sprintf("--credential-spec: %q cannot be the name of a GMSACredentialSpec: %s", i.container.CredentialSpec, reasons[0]))
		}
	}
	if cmd.Flags().Changed("domain") && i.container.Domain == "" {
		return command.Usage(cmd, "--domain is empty")
	}
	text, err := generate.InitContainer(i.container)
	switch {
	case errors.Is(err, generate.ErrImage):
		return command.Usage(cmd, "--image: "+err.Error())
	case errors.Is(err, generate.ErrDomain):
		return command.Usage(cmd, "--domain: "+err.Error())
	case err != nil:
		return err
	}
	_, err = io.WriteString(i.Out, text)
	return err
}
