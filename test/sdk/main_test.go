package sdk

import (
	"fmt"
	"os"
	"testing"
)

// podArgument, with the name of a cloud after it, makes the test binary a container of a pod.
const podArgument = "pod"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == podArgument {
		os.Exit(runContainer(os.Args[2]))
	}
	code, done, err := isolate()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "make a network and a file system for the tests:", err)
		os.Exit(1)
	case done:
		os.Exit(code)
	}
	os.Exit(m.Run())
}
