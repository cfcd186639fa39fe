package imagecredentials

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/atomicfile"
)

func newInstall() *cobra.Command {
	var to string
	command := &cobra.Command{
		Use:   "install",
		Short: "Copy this program into the folder that a kubelet runs credential providers from",
		Long: `Copy this program into the folder that a kubelet runs credential providers from, its --image-credential-provider-bin-dir.
The folder is made where it is missing. A program that is there is replaced in one step: one that runs goes on.
For the image of this program, which has nothing else to copy it with.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !filepath.IsAbs(to) {
				return serving.Usage(errors.New("--to is required: the absolute path of the folder"))
			}
			own, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			content, err := os.ReadFile(own)
			if err != nil {
				return fmt.Errorf("read this program: %w", err)
			}
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			path := filepath.Join(to, program)
			if err := atomicfile.RemoveUnfinished(path); err != nil {
				return err
			}
			return atomicfile.Replace(path, content, 0o755)
		},
	}
	command.Flags().StringVar(&to, "to", "", "folder of the kubelet's credential providers (required)")
	return command
}
