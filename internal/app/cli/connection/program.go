package connection

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/internal/app/cli/command"
)

// programTimeout and personTimeout bound the program of a kubeconfig's user, without and with a person.
const programTimeout, personTimeout = time.Minute, 10 * time.Minute

// withProgram returns config with the credentials of its user's program, if it has one. Not by client-go, which waits for a program
// that hangs without end, whatever becomes of the request.
func withProgram(config *rest.Config) (*rest.Config, error) {
	if config.ExecProvider == nil {
		return config, nil
	}
	// Its programs end with this process on Linux. Elsewhere one that hangs is ended by the time-out alone, if this process lives so long.
	pool, err := execcredential.NewPool(execcredential.Options{Timeout: programTimeout, InteractiveTimeout: personTimeout})
	if err == nil {
		config, err = clientgo.Config(pool, config)
	}
	if err != nil {
		return nil, kubeconfigFailure(err)
	}
	return config, nil
}

// needsPerson reports whether the program of a kubeconfig's user failed because a person had to log in. The exit codes of programs other
// than ours are unknown.
func needsPerson(err error) bool {
	if _, ok := errors.AsType[*execcredential.InteractiveError](err); ok {
		return true
	}
	exit, ok := errors.AsType[*execcredential.ExitError](err)
	return ok && exit.Code == command.ExitNeedsPerson && strings.HasPrefix(strings.TrimPrefix(filepath.Base(exit.Command), "kubectl-"), "credence")
}

// timeout bounds a request that is not bounded otherwise: it waits for the user's program, and that perhaps for a person.
func timeout(config *rest.Config) time.Duration {
	switch {
	case config.ExecProvider == nil:
		return requestTimeout
	case term.IsTerminal(int(os.Stdin.Fd())):
		return requestTimeout + personTimeout
	}
	return requestTimeout + programTimeout
}
