package network

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWritePlugins(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cni")
	settings := Settings{Nft: "/usr/sbin/nft", Shared: []int{17443, 17445}}
	for range 2 { // the second time in place of the first
		if err := settings.WritePlugins(folder, "/plugins"); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(folder, "10-credence.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Plugins []struct{ Type string }
	}
	if err := json.Unmarshal(content, &list); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range list.Plugins {
		if _, err := os.Lstat(filepath.Join(folder, "bin", plugin.Type)); err != nil {
			t.Error(err)
		}
	}
	script, err := os.ReadFile(filepath.Join(folder, "bin", Subcommand))
	if self, _ := os.Executable(); err != nil || string(script) != "#!/bin/sh\nexec '"+self+"' "+Subcommand+"\n" {
		t.Errorf("the plugin is %q, %v", script, err)
	}
}

func TestRunPlugin(t *testing.T) {
	const result = `{"cniVersion":"1.0.0","ips":[{"address":"10.97.0.2/16"}]}`
	for command, test := range map[string]struct{ config, want, fails string }{
		"VERSION": {want: `{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}`},
		"ADD":     {config: `{"cniVersion":"1.0.0","shared":[],"prevResult":` + result + `}`, want: result},
		"DEL":     {config: `{"cniVersion":"1.0.0","shared":[17445]}`},
		"CHECK":   {config: `no`, fails: "read configuration"},
	} {
		var out strings.Builder
		err := RunPlugin(func(name string) string { return map[string]string{"CNI_COMMAND": command}[name] }, strings.NewReader(test.config), &out)
		if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) || out.String() != test.want {
			t.Errorf("%s: %q, %v", command, out.String(), err)
		}
	}
}
