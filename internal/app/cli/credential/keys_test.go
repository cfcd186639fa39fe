package credential

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

// The small program finds what the command line keeps by the same key, for each source and its flags.
func TestBothProgramsAgreeOnKeys(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "kubeconfig")
	text := `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "https://c"}}, {"name": "d", "cluster": {"server": "https://d"}}],
		"users": [{"name": "u", "user": {}}, {"name": "v", "user": {}}],
		"contexts": [{"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "n"}}, {"name": "b", "context": {"cluster": "d", "user": "v"}}]}`
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("KUBECONFIG", file)
	info := credential.ExecInfo{APIVersion: credential.V1, FromClient: true, Cluster: &credential.Cluster{Server: "https://x", Config: []byte(
		`{"oidc": {"parameters": {"of": "cluster"}}, "workloadIdentity": {"duration": "20m"}, "clientCertificate": {"duration": "2h"}}`)}}
	seen := map[string]bool{}
	kinds := map[string]bool{}
	for _, line := range []string{
		"workload-identity app", "workload-identity app -n other", "workload-identity --namespace=more app", "workload-identity app --context sa/x",
		"workload-identity app --kube-context b", "workload-identity app --kubeconfig " + file + " --kube-context b -n y",
		"oidc --issuer https://i.example.com --client-id c", "oidc --issuer=https://i.example.com --client-id=c --present access --ca-file /ca.pem",
		"oidc --issuer https://i.example.com --client-id d --scope b --scope a --parameter prompt=consent --parameter x= --port 1,2 --client-secret-file /s",
		"client-certificate --user-name jane", "client-certificate --user-name jane --context b --group z --group a,b --duration 2h --signer example.com/x",
		"client-certificate --user-name joe --usage 'client-auth' --usage client\u00a0auth --renew-before 1h",
		"token-exchange --endpoint https://e --subject-token-file /t", "token-exchange --endpoint https://e --subject-token-file /t --audience a --audience b,c --scope s --resource https://r --authentication basic --client-id c --client-secret-file /s --ca-file /c --requested-token-type x",
		"file --path /t", "in-order -- file --path /t -- oidc --issuer https://i.example.com --client-id c", "in-order -- file --path /t -- file --path /u",
		"in-order -- oidc --issuer https://i.example.com --client-id c -- file --path /t", "in-order -- workload-identity app -n o -- workload-identity app",
	} {
		args := strings.Fields(line)
		small, err := keyOfSmall(args, info)
		big, bigErr := keyOfBig(t, args, info)
		if (err == nil) != (bigErr == nil) {
			t.Errorf("%s: %v, and %v", line, err, bigErr)
			continue
		}
		if diff := cmp.Diff(big, small); diff != "" {
			t.Errorf("%s:\n%s", line, diff)
		}
		kinds[args[0]] = err == nil || kinds[args[0]]
		if key := strings.Join(flat(small), "\n"); err == nil && args[0] != "file" {
			if seen[key] {
				t.Errorf("%s: the key of another line", line)
			}
			seen[key] = true
		}
	}
	for _, kind := range provider.Kinds() {
		if !kinds[kind.Name] {
			t.Errorf("no line of source %s works", kind.Name)
		}
	}
}

func flat(key map[string]string) []string {
	var words []string
	for name, value := range key {
		words = append(words, name+"="+value)
	}
	slices.Sort(words)
	return words
}

func keyOfSmall(args []string, info credential.ExecInfo) (map[string]string, error) {
	line, err := provider.ParseLine(args)
	if err != nil {
		return nil, err
	}
	chosen, err := line.Choose(provider.Here(time.Now), info)
	if err != nil {
		return nil, err
	}
	return chosen.Key(), nil
}

// keyOfBig runs the command line with a command of the same sources that prints their keys.
func keyOfBig(t *testing.T, args []string, info credential.ExecInfo) (map[string]string, error) {
	t.Helper()
	terminal := screen.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, nil, nil)
	connection := connection.New()
	root := &cobra.Command{Use: "credence", SilenceErrors: true, SilenceUsage: true}
	connection.AddFlags(root.PersistentFlags())
	root.PersistentPreRunE = connection.RefuseWithoutEffect(root.PersistentFlags())
	var key map[string]string
	for _, kind := range provider.Kinds() {
		root.AddCommand(newSourceCommand(terminal, connection, kind, sourceUse{
			example: func(string) string { return "" },
			run: func(s *source, cmd *cobra.Command, args []string) error {
				chosen, err := s.choose(cmd, args, info)
				if err == nil {
					key = chosen.Key()
				}
				return err
			},
		}))
	}
	root.SetArgs(args)
	return key, root.ExecuteContext(t.Context())
}

func TestNoBrowserIsOpened(t *testing.T) {
	for name, test := range map[string]struct {
		system      string
		environment map[string]string
		opens       bool
	}{
		"no display":          {system: "linux"},
		"a display":           {system: "linux", environment: map[string]string{"DISPLAY": ":0"}, opens: true},
		"Wayland":             {system: "linux", environment: map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, opens: true},
		"SSH with a display":  {system: "linux", environment: map[string]string{"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "a 1 b 2"}},
		"macOS":               {system: "darwin", opens: true},
		"macOS over SSH":      {system: "darwin", environment: map[string]string{"SSH_TTY": "/dev/ttys0"}},
		"Windows":             {system: "windows", opens: true},
		"Windows over SSH":    {system: "windows", environment: map[string]string{"SSH_CLIENT": "a"}},
		"nothing of a server": {system: "freebsd"},
	} {
		if err := noBrowser(test.system, func(name string) string { return test.environment[name] }); (err == nil) != test.opens {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range []string{"", "file:///etc/passwd", "-x", "javascript:alert(1)", "https:", "calc.exe"} {
		if err := (person{browser: []string{"true"}}).OpenURL(address); err == nil {
			t.Errorf("%q is opened", address)
		}
	}
}
