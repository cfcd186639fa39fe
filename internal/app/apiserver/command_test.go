package apiserver

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/test/testkit"
)

// Settings that can't work are refused before anything is stored or served, and the error names the flag.
func TestCommandRefusesWhatCannotWork(t *testing.T) {
	folder := t.TempDir()
	kubeconfig, open := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "open")
	text := `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "contexts": [{"name": "a", "context": {"cluster": "c"}}]}`
	testkit.Must(t, errors.Join(os.WriteFile(kubeconfig, []byte(text), 0o600), os.Mkdir(open, 0o777), os.Chmod(open, 0o777)))
	for name, test := range map[string]struct {
		args  []string
		want  string
		usage bool
	}{
		"nothing":            {nil, "--issuer is required", true},
		"no cluster":         {complete, "--kubeconfig is missing", true},
		"no kubeconfig":      {append(complete, "--kubeconfig="+kubeconfig+".missing"), "--kubeconfig", false},
		"keys that are open": {append(complete, "--kubeconfig="+kubeconfig, "--keys-dir="+open), "open key store: ", false},
		"no traces":          {append(complete, "--tracing-config-file="+kubeconfig+".missing"), "missing", true},
		"a relative socket":  {append(complete, "--kubeconfig="+kubeconfig, "--keys-dir=", "--signer-socket=signer.sock"), "--signer-socket: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			t.Setenv("GOGC", "100") // the command would set it for the whole test
			command, err := NewCommand()
			testkit.Must(t, err)
			command.SetErr(io.Discard)
			command.SetOut(io.Discard)
			command.SetArgs(append([]string{}, test.args...))
			err = command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if _, usage := errors.AsType[*serving.UsageError](err); usage != test.usage {
				t.Errorf("%v: an error of usage is %v, want %v", err, usage, test.usage)
			}
		})
	}
}

// The keys of a folder are those that are found first. A folder without any is not an error at the start: whether keys are made is known later.
func TestKeysAreReadFromTheirFolder(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://127.0.0.1:1"})
	folder := filepath.Join(t.TempDir(), "keys")
	o := &Options{KeysDir: folder, KeysInterval: keys.DefaultStaleness / 2}
	source, err := openKeys(t.Context(), o, checked{}, client, slog.New(slog.DiscardHandler))
	if err != nil || len(source.atStart()) != 0 || source.unready() == nil {
		t.Fatalf("an empty folder: %v, %v", source, err)
	}
	store, err := keystore.OpenDirectory(folder)
	testkit.Must(t, err)
	ring, _, err := keystore.LoadOrBootstrap(t.Context(), store, keys.NewPrivate, time.Now())
	testkit.Must(t, err)
	source, err = openKeys(t.Context(), o, checked{}, client, slog.New(slog.DiscardHandler))
	if err != nil || len(source.atStart()) != len(ring.Published()) {
		t.Fatalf("%d keys, %v, want %d", len(source.atStart()), err, len(ring.Published()))
	}
	if source.operator().Store == nil {
		t.Error("this server can't change its own keys")
	}
	if len(source.published()) != 0 || len(source.revoked()) != 0 || !source.readAt().IsZero() {
		t.Error("keys are published that no follower has read")
	}
}
