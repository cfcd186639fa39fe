//go:build unix

package up

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/app/up/cluster"
	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/internal/registry"
)

// devcluster is the program that runs the node, and nodeName what it calls it.
const (
	devcluster = "credence-devcluster"
	nodeName   = "127.0.0.1"
)

// nodeDriver is the program that delivers tokens into volumes of the node, and the name of its process there.
const nodeDriver = "credence-node"

// imageCredentials is the program that the kubelet runs for passwords of images.
const imageCredentials = "credence-image-credentials"

// nodeParts are the processes of a node that devcluster starts, and starts again.
var nodeParts = []string{"kube-scheduler", "containerd", "kubelet", "kube-proxy", "coredns", nodeDriver}

// guardPart is the process between the kubelet and containerd, where there is one.
const guardPart = "guard"

func partsOf(guarded bool) []string {
	if guarded {
		return append(slices.Clip(nodeParts), guardPart)
	}
	return nodeParts
}

func (i installation) nodeName() string {
	if !i.node {
		return ""
	}
	return nodeName
}

func (i installation) nodeArguments() []string {
	if !i.node {
		return nil
	}
	arguments := []string{"--node", "--shared-port", i.port(discoveryPort), "--csi-driver", i.driver}
	if i.imageRegistries != "" {
		arguments = append(arguments, "--image-credentials", i.imageCredentials, "--image-registries", i.imageRegistries)
	}
	if i.guard != "" {
		arguments = append(arguments, "--guard", i.driver, "--guard-template", i.guard)
	}
	if i.guardAllow != "" {
		arguments = append(arguments, "--guard-allow", i.guardAllow)
	}
	return arguments
}

// guardTemplates are the templates of the guard that need no file.
func guardTemplates() []string { return []string{"restricted", "baseline"} }

// setGuard takes what static pods are tightened to, and the file of those that are not. Files are the guard's to read.
func (i *installation) setGuard(template, allow string) (err error) {
	switch {
	case template == "" && allow == "":
		return nil
	case !i.node:
		return errors.New("--guard and --guard-allow are for static pods of a node: add --node")
	case template == "":
		return errors.New("--guard-allow is for pods that --guard would tighten: add --guard")
	}
	if i.guard = template; !slices.Contains(guardTemplates(), template) {
		if i.guard, err = existing("--guard", template); err != nil {
			return fmt.Errorf("%w; or give restricted, or baseline", err)
		}
	}
	if allow != "" {
		i.guardAllow, err = existing("--guard-allow", allow)
	}
	return err
}

// existing is the absolute path of a file of a flag.
func existing(flag, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return absolute, nil
}

// locateNode finds the programs that the node runs, and the file of registries that one of them is for.
func (i *installation) locateNode(executable, registries string) (err error) {
	if !i.node {
		if registries != "" {
			return errors.New("--image-registries is for pods of a node: add --node")
		}
		return nil
	}
	if i.driver, err = process.Locate(nodeDriver, executable); err != nil || registries == "" {
		return err
	}
	if i.imageRegistries, err = existing("--image-registries", registries); err != nil {
		return err
	}
	data, err := os.ReadFile(i.imageRegistries)
	if err == nil {
		_, err = registry.Parse(data)
	}
	if err != nil {
		return fmt.Errorf("--image-registries: %s: %w", i.imageRegistries, err)
	}
	i.imageCredentials, err = process.Locate(imageCredentials, executable)
	return err
}

// checkNode returns an error that names what this machine lacks for a node.
func checkNode(ctx context.Context, programs map[string]string, dir home.Dir) error {
	if err := askDevcluster(ctx, programs[devcluster], "check-node", dir); err != nil {
		return fmt.Errorf("--node: %w", err)
	}
	return nil
}

// clearNode ends what a killed devcluster has left of its node: pods outlive what started them.
func clearNode(ctx context.Context, dir home.Dir) error {
	if _, err := os.Stat(dir.Path("devcluster", "node")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// An up that has just started does it itself.
	if _, held, err := dir.Holder(); err != nil || held {
		return err
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	program, err := process.Locate(devcluster, executable)
	if err != nil {
		return err
	}
	return askDevcluster(ctx, program, "clean-node", dir)
}

// askDevcluster runs a command of devcluster; its last line is the error.
func askDevcluster(ctx context.Context, program, command string, dir home.Dir) error {
	var stderr bytes.Buffer
	asked := exec.CommandContext(ctx, program, command, "--dir", dir.Path("devcluster"))
	asked.Stderr = &stderr
	err := asked.Run()
	if _, refused := errors.AsType[*exec.ExitError](err); refused {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return errors.New(strings.TrimPrefix(lines[len(lines)-1], devcluster+": "))
	}
	if err != nil {
		return fmt.Errorf("run %s %s: %w", devcluster, command, err)
	}
	return nil
}

// awaitNode waits until the node reports ready.
func (s *starter) awaitNode(ctx context.Context) error {
	ready := s.tracker.Begin("node", "starting "+strings.Join(partsOf(s.guard != ""), ", "))
	// A report of an earlier run does not count.
	began := s.now().Add(-s.tracker.Elapsed())
	err := poll(ctx, startLimit, func(ctx context.Context) error {
		if err := s.admin.NodeReady(ctx, nodeName, began); err != nil {
			return err
		}
		for _, name := range partsOf(s.guard != "") {
			if p := s.nodeProcessPart(name); !p.Healthy {
				return errors.New(name + " " + p.Detail)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the node did not become ready: %w, log file %s", err, s.dir.Log("devcluster"))
	}
	ready("ready for pods")
	return nil
}

// nodeQuestions are those of status about the node; none where there is no node.
func (i installation) nodeQuestions(ctx context.Context, endpoints home.Endpoints) []func() part {
	if endpoints.Node == "" {
		return nil
	}
	var all []func() part
	for _, name := range partsOf(endpoints.Guard) {
		all = append(all, func() part { return i.nodeProcessPart(name) })
	}
	return append(all, func() part { return i.nodePart(ctx, endpoints.Node) })
}

func (i installation) nodeProcessPart(name string) part {
	p := part{Name: name, LogFile: i.dir.Log("devcluster")}
	running, err := i.nodeProcesses()
	if err != nil {
		p.Detail = err.Error()
		return p
	}
	n := slices.IndexFunc(running, func(c home.Component) bool { return c.Name == name })
	if n < 0 || !process.Alive(running[n].PID) {
		p.Detail = "does not run, log file " + p.LogFile
		return p
	}
	p.Healthy, p.PID, p.Detail = true, running[n].PID, "runs"
	return p
}

// nodeProcesses reads devcluster's list of its processes.
func (i installation) nodeProcesses() ([]home.Component, error) {
	content, err := os.ReadFile(i.dir.Path("devcluster", "node", "processes.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the node's processes: %w", err)
	}
	var state struct {
		Processes []home.Component `json:"processes"`
	}
	if err := json.Unmarshal(content, &state); err != nil {
		return nil, fmt.Errorf("look for the node's processes: %w", err)
	}
	return state.Processes, nil
}

func (i installation) nodePart(ctx context.Context, name string) part {
	p := part{Name: "node"}
	admin, err := cluster.New(i.dir.Kubeconfig())
	if err == nil {
		err = admin.NodeReady(ctx, name, time.Time{})
	}
	if err != nil {
		p.Detail = err.Error()
		return p
	}
	p.Healthy, p.Detail = true, name+" is ready for pods"
	return p
}
