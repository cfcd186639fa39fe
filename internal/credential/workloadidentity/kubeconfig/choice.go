package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// PodFolder is where the kubelet puts the service account of a pod.
const PodFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// Choice is what the caller chose, and where it runs.
type Choice struct {
	// Path is the kubeconfig; empty: the files of the variable KUBECONFIG, else ~/.kube/config, else the pod's service account.
	Path string
	// Context is the context of the kubeconfig; empty: its current one.
	Context string
	// Environment looks up a variable, as os.Getenv does; required.
	Environment func(name string) string
	// Home is the folder of the user; empty: ~/.kube/config is not looked for.
	Home string
	// PodFolder holds token, ca.crt and namespace; empty: PodFolder.
	PodFolder string
	// Program is the path of this program, to detect it under other names; empty: only its usual names are detected.
	Program string
}

// Read returns the API server and the user. The error is ErrLeadsBack, or names the file and its fault.
func (c Choice) Read() (Access, error) {
	access, program, err := c.access()
	if err != nil {
		return Access{}, err
	}
	// Only after the choice is valid: another mistake is reported first, also from within.
	if c.Environment(Guard) != "" {
		return Access{}, fmt.Errorf("%w: this program runs for a kubeconfig that this program reads already; %s", ErrLeadsBack, wayOut)
	}
	if program != nil {
		if err := program.check(c.Program); err != nil {
			return Access{}, fmt.Errorf("user %q of the kubeconfig, by context %q: %w", access.User, access.Context, err)
		}
	}
	return access, nil
}

func (c Choice) access() (Access, *program, error) {
	files, err := c.files()
	if err != nil {
		return Access{}, nil, err
	}
	merged, read, err := load(files, c.Path != "")
	if err != nil {
		return Access{}, nil, err
	}
	if len(merged.clusters) == 0 && len(merged.contexts) == 0 && c.Path == "" && c.Context == "" {
		access, err := c.pod()
		return access, nil, err
	}
	return merged.choose(c.Context, read)
}

// files are the absolute paths of possible kubeconfigs.
func (c Choice) files() ([]string, error) {
	var paths []string
	switch list := c.Environment("KUBECONFIG"); {
	case c.Path != "":
		paths = []string{c.Path}
	case list != "":
		paths = filepath.SplitList(list)
	case c.Home != "":
		paths = []string{filepath.Join(c.Home, ".kube", "config")}
	}
	var files []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
		}
		files = append(files, absolute)
	}
	return files, nil
}

var errNone = errors.New("there is no kubeconfig, and this is not a pod with a service account: set KUBECONFIG, or give --kubeconfig FILE")

// pod is the cluster of the pod that this program runs in.
func (c Choice) pod() (Access, error) {
	folder := cmp.Or(c.PodFolder, PodFolder)
	host, port := c.Environment("KUBERNETES_SERVICE_HOST"), c.Environment("KUBERNETES_SERVICE_PORT")
	if info, err := os.Stat(filepath.Join(folder, "token")); host == "" || port == "" || err != nil || info.IsDir() {
		return Access{}, errNone
	}
	namespace, err := os.ReadFile(filepath.Join(folder, "namespace"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Access{}, fmt.Errorf("read the namespace of the pod: %w", err)
	}
	access := Access{Server: "https://" + net.JoinHostPort(host, port), Namespace: strings.TrimSpace(string(namespace)), Pod: folder}
	access.Namespace = cmp.Or(access.Namespace, defaultNamespace)
	return access, nil
}
