//go:build linux

package containerd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/credence-id/credence/devcluster/internal/image"
	"github.com/credence-id/credence/devcluster/internal/network"
)

// Programs are the paths of what a node runs that is not ours.
type Programs struct {
	Containerd, Ctr, Busybox, Nft string
	// Plugins is the folder of CNI plugins.
	Plugins string
}

// pluginFolders are where systems and people install CNI plugins.
var pluginFolders = []string{"/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"}

// install is for the systems that most people have; others have packages of the same names.
const install = "apt-get install -y --no-install-recommends"

// Find returns the programs, or an error that names all that are missing and the command that installs them.
func Find() (Programs, error) { return findWith(lookPath) }

func findWith(lookPath func(string) (string, error)) (Programs, error) {
	var missing, packages []string
	find := func(name, pkg string) string {
		path, err := lookPath(name)
		if err != nil {
			missing = append(missing, name)
			if len(packages) == 0 || packages[len(packages)-1] != pkg {
				packages = append(packages, pkg)
			}
		}
		return path
	}
	found := Programs{Containerd: find("containerd", "containerd"), Ctr: find("ctr", "containerd")}
	find("containerd-shim-runc-v2", "containerd")
	find("runc", "runc")
	found.Busybox = find("busybox", "busybox-static")
	found.Nft = find("nft", "nftables")
	for _, name := range network.Plugins() {
		found.Plugins = filepath.Dir(find(name, "containernetworking-plugins"))
	}
	if len(missing) > 0 {
		return Programs{}, fmt.Errorf("a node needs %s, not found in PATH: run %s %s", strings.Join(missing, ", "), install, strings.Join(packages, " "))
	}
	if err := image.CheckProgram(found.Busybox); err != nil {
		return Programs{}, fmt.Errorf("a node needs a static busybox: %w: run %s busybox-static", err, install)
	}
	return found, nil
}

// lookPath looks where administrators' programs are, too, as sudo and cron leave these folders out, and where plugins are.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return filepath.Abs(path)
	}
	for _, folder := range append([]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, pluginFolders...) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", errors.New("not found")
}
