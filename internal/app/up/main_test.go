//go:build unix

package up

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestMain makes the test binary every program of an installation: the name it is started under selects which.
func TestMain(m *testing.M) {
	switch program := filepath.Base(os.Args[0]); program {
	case "credence":
		exit(runCredence())
	case "credence-devcluster", "credence-server", "credence-discovery":
		exit(runFake(program, os.Args[1:]))
	default:
		os.Exit(m.Run())
	}
}

func runCredence() error {
	root := &cobra.Command{Use: "credence", SilenceErrors: true}
	root.AddCommand(NewCommands(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})...)
	return root.ExecuteContext(context.Background())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
