package execcredential

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

const (
	depthVariable   = "EXECCREDENTIAL_DEPTH"
	mostDepthOfRuns = 5
)

// command is what is run, once policies and the operating system allow it.
func (p *program) command(interactive bool) (*exec.Cmd, error) {
	path, err := p.config.lookup()
	if err != nil {
		return nil, err
	}
	for _, policy := range []Policy{p.policy, p.config.Policy} {
		if path, err = policy.check(p.config.Command, path, p.config.Args, p.config.Env); err != nil {
			return nil, err
		}
	}
	if runtime.GOOS == "windows" {
		if err := checkBatch(p.config.Command, path, p.config.Args); err != nil {
			return nil, err
		}
	}
	command := &exec.Cmd{Path: path, Args: append([]string{p.config.Command}, p.config.Args...), Env: p.environ()}
	for _, v := range p.config.Env {
		command.Env = append(command.Env, v.Name+"="+v.Value)
	}
	depth, err := p.depth(p.environ())
	if err != nil {
		return nil, err
	}
	command.Env = append(command.Env, depthVariable+"="+strconv.Itoa(depth))
	config := p.config
	err = p.tell(command, config, interactive)
	if tooLarge := (*TooLargeError)(nil); errors.As(err, &tooLarge) && config.ProvideClusterInfo {
		config.Cluster.CertificateAuthorityData = withoutComments(config.Cluster.CertificateAuthorityData)
		err = p.tell(command, config, interactive)
	}
	return command, err
}

// tell adds KUBERNETES_EXEC_INFO, and checks whether the operating system takes it.
func (p *program) tell(command *exec.Cmd, config Config, interactive bool) error {
	info, err := config.execInfo(interactive)
	if err != nil {
		return err
	}
	command.Env = append(command.Env, execInfoVariable+"="+info) // of equal names the last one counts
	return p.limits.check(command.Args, command.Environ())
}

// depth counts programs that were run by programs, of this library: a program whose own kubeconfig leads back to it would be run
// without end. A value that the config sets is ignored.
func (p *program) depth(env []string) (int, error) {
	depth := 1
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, depthVariable+"="); ok {
			before, _ := strconv.Atoi(value)
			depth = before + 1
		}
	}
	if depth > mostDepthOfRuns {
		return 0, &PolicyError{Command: p.config.Command, Reason: fmt.Sprintf("%d programs run each other already; does the kubeconfig that it uses name itself?", mostDepthOfRuns)}
	}
	return depth, nil
}
