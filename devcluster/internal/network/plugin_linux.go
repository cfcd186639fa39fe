package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/credence-id/credence/devcluster/internal/state"
)

// Subcommand is the argument that makes this binary a CNI plugin: it gives a pod the shared ports on its own 127.0.0.1.
const Subcommand = "cni-loopback"

// pluginSettings is what a plugin of ours reads of its configuration (CNI specification 1.0.0, section 3).
type pluginSettings struct {
	Version        string          `json:"cniVersion"`
	Nft            string          `json:"nft"`
	Shared         []int           `json:"shared"`
	PreviousResult json.RawMessage `json:"prevResult"`
}

// WritePlugins makes folder hold the network configuration of pods, and its subfolder bin the plugins. Those of the CNI project are in
// pluginFolder.
func (s Settings) WritePlugins(folder, pluginFolder string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	bin := filepath.Join(folder, "bin")
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("make network configuration: %w", err)
	}
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return fmt.Errorf("make network configuration: %w", err)
	}
	for _, name := range Plugins() {
		if err := os.Symlink(filepath.Join(pluginFolder, name), filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("make network configuration: %w", err)
		}
	}
	// A plugin gets no arguments.
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' %s\n", strings.ReplaceAll(self, "'", `'\''`), Subcommand)
	if err := state.WriteFile(filepath.Join(bin, Subcommand), []byte(script), 0o700); err != nil {
		return err
	}
	content, err := json.Marshal(s.conflist())
	if err != nil {
		return fmt.Errorf("encode network configuration: %w", err)
	}
	return state.WriteFile(filepath.Join(folder, "10-credence.conflist"), content, 0o600)
}

// Plugins are those of the CNI project that are needed.
func Plugins() []string { return []string{"loopback", "ptp", "host-local"} }

// conflist routes between pods rather than bridging: answers to a Service's client then pass the packet filter, which has to change
// their address back, with no setting of the machine's bridges.
func (s Settings) conflist() map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []map[string]any{
			{"type": "ptp", "ipam": map[string]any{
				"type":   "host-local",
				"ranges": [][]map[string]string{{{"subnet": Pods, "gateway": gateway}}},
				"routes": []map[string]string{{"dst": "0.0.0.0/0"}},
			}},
			{"type": Subcommand, "nft": s.Nft, "shared": s.Shared},
		},
	}
}

// RunPlugin is one call of the plugin.
func RunPlugin(getenv func(string) string, stdin io.Reader, stdout io.Writer) error {
	if getenv("CNI_COMMAND") == "VERSION" {
		_, err := io.WriteString(stdout, `{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}`)
		return err
	}
	var settings pluginSettings
	if err := json.NewDecoder(stdin).Decode(&settings); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	// With the namespace of the pod its rules go, too.
	if getenv("CNI_COMMAND") != "ADD" {
		return nil
	}
	if err := settings.share(getenv("CNI_NETNS"), getenv("CNI_IFNAME")); err != nil {
		return err
	}
	_, err := stdout.Write(settings.PreviousResult)
	return err
}

// share makes connections to the shared ports of a pod's 127.0.0.1 go to the node's address, as if the pod had dialed that.
func (s pluginSettings) share(namespace, device string) error {
	if len(s.Shared) == 0 {
		return nil
	}
	if filepath.Base(device) != device {
		return fmt.Errorf("invalid network device %q", device)
	}
	// This thread ends with the process.
	runtime.LockOSThread()
	fd, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", namespace, err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return errors.Join(fmt.Errorf("enter network namespace %s: %w", namespace, err), unix.Close(fd))
	}
	if err := unix.Close(fd); err != nil {
		return err
	}
	// The kernel otherwise drops packets between a loopback address and another device.
	if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4/conf", device, "route_localnet"), []byte("1"), 0o644); err != nil {
		return err
	}
	var ports []string
	for _, port := range s.Shared {
		ports = append(ports, strconv.Itoa(port))
	}
	return nft(s.Nft, fmt.Sprintf(`table ip credence {
	chain output {
		type nat hook output priority -100;
		ip daddr 127.0.0.1 tcp dport { %s } dnat to %s
	}
	chain postrouting {
		type nat hook postrouting priority 100;
		ip saddr 127.0.0.0/8 ip daddr %[2]s masquerade
	}
}
`, strings.Join(ports, ", "), Node))
}
