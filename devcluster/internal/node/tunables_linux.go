package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/credence-id/credence/devcluster/internal/state"
)

const tunablesName = "tunables.json"

// tunables are the settings of the whole kernel that the kubelet changes as it starts, with what it makes them.
var tunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// kernelSettings is where tunables are.
const kernelSettings = "/proc/sys"

// rememberTunables writes down what the kubelet is going to change. A setting that has its value already is left out: it may be
// another kubelet's, and so not ours to change back.
func rememberTunables(sysctl, folder string) error {
	before := map[string]string{}
	for name, made := range tunables {
		content, err := os.ReadFile(filepath.Join(sysctl, name))
		if err != nil {
			continue
		}
		if value := strings.TrimSpace(string(content)); value != made {
			before[name] = value
		}
	}
	content, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("remember kernel settings: %w", err)
	}
	return state.WriteFile(filepath.Join(folder, tunablesName), content, 0o600)
}

// restoreTunables changes back what rememberTunables wrote down, unless it has been changed since.
func restoreTunables(sysctl, folder string) error {
	file := filepath.Join(folder, tunablesName)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore kernel settings: %w", err)
	}
	before := map[string]string{}
	if err := json.Unmarshal(content, &before); err != nil {
		return fmt.Errorf("restore kernel settings: %s is damaged: %w: remove it", file, err)
	}
	for name, made := range tunables {
		value, changed := before[name]
		if !changed {
			continue
		}
		path := filepath.Join(sysctl, name)
		if now, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(now)) != made {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("restore kernel settings: %w", err)
		}
	}
	return os.Remove(file)
}
