//go:build unix

package up

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/credence-id/credence/internal/wording"
)

// writeSummary prints where everything is, and three commands that work as they stand.
func writeSummary(out io.Writer, i installation) error {
	kubeconfig, authority := wording.Argument(nearest(i.dir.Kubeconfig())), wording.Argument(nearest(i.dir.CAFile()))
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintf(table, "\nCredence is ready%s.\n\n", i.timesOfStart())
	rows := [][2]string{
		{"Kubernetes API", i.clusterURL()},
		{"Kubeconfig", nearest(i.dir.Kubeconfig())},
		{"Issuer", string(i.config.Issuer)},
		{"Public keys", i.config.Issuer.JWKSURL()},
		{"CA of all", nearest(i.dir.CAFile())},
		{"Logs", nearest(i.dir.Path("logs"))},
	}
	if i.node {
		rows = append(rows, [2]string{"Node", nodeName + ", for pods"})
	}
	for _, row := range rows {
		_, _ = fmt.Fprintf(table, "  %s\t%s\n", row[0], row[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, `
Try next:

  echo '%s' | %s --kubeconfig %s create -f -
  %s token create demo --kubeconfig %s
  %s token create demo --kubeconfig %s | %s token verify - --issuer %s --audience demo --ca-file %s

`, demoIdentity, kubectl(), kubeconfig, program(), kubeconfig, program(), kubeconfig, program(), i.config.Issuer, authority)
	return err
}

const demoIdentity = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"demo"},"spec":{"audiences":["demo"],"targetSystem":{"type":"generic"}}}`

// timesOfStart is empty if they are not known.
func (i installation) timesOfStart() string {
	data, err := os.ReadFile(i.dir.StartupFile())
	if err != nil {
		return ""
	}
	var times startup
	if json.Unmarshal(data, &times) != nil {
		return ""
	}
	var parts []string
	for _, p := range times.Parts {
		parts = append(parts, fmt.Sprintf("%s %.1fs", p.Name, p.Seconds))
	}
	return fmt.Sprintf(" after %.1fs (%s start: %s)", times.Seconds, times.Kind, strings.Join(parts, ", "))
}

// program is how this program was called, as it can be called again from the same folder.
func program() string { return wording.Argument(os.Args[0]) }

// kubectl is the one that was built with this program, for those who have no other.
func kubectl() string {
	if beside := filepath.Join(filepath.Dir(os.Args[0]), "kubectl"); strings.ContainsRune(os.Args[0], filepath.Separator) {
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return wording.Argument(beside)
		}
	}
	return "kubectl"
}

// nearest is path relative to the working directory where that is shorter.
func nearest(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || len(relative) >= len(path) {
		return path
	}
	return relative
}
