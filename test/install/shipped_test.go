package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
)

// The commands that Helm prints after installing exist, with their flags. TestInstallOnANode runs those of a whole installation.
func TestNotesNameCommands(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "none", "contexts": [{"name": "none", "context": {"cluster": "none"}}],
		"clusters": [{"name": "none", "cluster": {"server": "https://127.0.0.1:1"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]string{
		"everything": "issuer=https://id.example.com",
		"a copy":     "issuer=https://id.example.com,storage.copyFrom=embedded",
		"workloads":  "identities.enabled=false,workloads.identityKubeconfigSecret=identities",
		"volumes":    "issuer=https://id.example.com,node.enabled=true",
		"gMSA":       "identities.enabled=false,workloads.enabled=false",
		"policies":   "identities.enabled=false,workloads.enabled=false,gmsa.withoutWebhook=true",
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := helm(t, kubeconfig, "install", "credence", chart, "--namespace", "credence-system", "--dry-run=client", "--hide-notes=false", "--set", set)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			commands := commandsOfNotes(t, stdout)
			if len(commands) < 3 {
				t.Fatalf("commands: %q", commands)
			}
			for _, line := range commands {
				for _, command := range regexp.MustCompile(` (?:&&|\|) `).Split(line, -1) {
					// kubectl and Helm print help only if they know all that is before it; credence prints it for any command.
					words := strings.Fields(strings.TrimSuffix(command, " --help"))
					if words[0] != "credence" {
						words = append(words, "--help")
					}
					run := exec.CommandContext(t.Context(), controlplane.Program(words[0]), words[1:]...)
					run.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
					var errors bytes.Buffer
					run.Stderr = &errors
					if err := run.Run(); err != nil && (words[0] != "credence" || strings.Contains(errors.String(), "unknown ")) {
						t.Errorf("%s: %v\n%s", command, err, errors.String())
					}
				}
			}
		})
	}
}

// commandsOfNotes returns the commands among what Helm prints after installing.
func commandsOfNotes(t *testing.T, printed string) []string {
	t.Helper()
	_, notes, found := strings.Cut(printed, "\nNOTES:\n")
	if !found {
		t.Fatalf("no notes in\n%s", printed)
	}
	var commands []string
	for _, line := range regexp.MustCompile(`(?m)^   (\S.*)$`).FindAllStringSubmatch(notes, -1) {
		commands = append(commands, line[1])
	}
	return commands
}
