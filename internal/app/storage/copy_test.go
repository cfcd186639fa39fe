package storage

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/credence-id/credence/internal/apiserver/storage"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/test/testkit"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := NewCommand()
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetOut(&out)
	command.SetArgs(append([]string{"copy"}, args...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// fill starts the etcd of a folder, puts an object into it, and stops it.
func fill(t *testing.T, folder, object string) {
	t.Helper()
	etcd := testkit.Need(storage.Start(t.Context(), folder, slog.New(slog.DiscardHandler)))(t)
	defer etcd.Stop()
	client := testkit.Need(clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}, Logger: zap.NewNop()}))(t)
	defer func() { _ = client.Close() }()
	testkit.Must(t, testkit.Err(client.Put(t.Context(), defaultPrefix+"/workloadidentities/"+object, "{}")))
}

// Objects are copied from one embedded etcd to another, which must be empty.
func TestCopyBetweenFolders(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	fill(t, from, "team/app")
	out, err := run(t, "--from", "embedded:"+from, "--to", "embedded:"+to)
	if want := "1 objects copied from embedded:" + from + " to embedded:" + to + ", and compared\n"; err != nil || out != want {
		t.Fatalf("%q, %v, want %q", out, err, want)
	}
	if out, err := run(t, "--from", "embedded:"+from, "--to", "embedded:"+to); err == nil || out != "" {
		t.Errorf("a copy to a storage with objects: %q, %v", out, err)
	}
}

// While an API server of Credence answers, nothing is copied: it would change the source, and not notice the target.
func TestCopyIsRefusedWhileAServerAnswers(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	testkit.Must(t, os.MkdirAll(filepath.Join(from, "data", "member"), 0o700))
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/authentication.gardener.cloud/v1alpha1" {
			t.Errorf("request %s", r.URL)
		}
		w.WriteHeader(code)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"current-context": "a", "clusters": [{"name": "c", "cluster": {"server": "` + server.URL + `"}}], "contexts": [{"name": "a", "context": {"cluster": "c"}}]}`
	testkit.Must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	args := []string{"--from", "embedded:" + from, "--to", "cluster", "--kubeconfig", kubeconfig}
	if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), "an API server of Credence answers in this cluster") {
		t.Errorf("%v", err)
	}
	code = http.StatusForbidden
	if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), "check that no API server of Credence runs") {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := run(t, append(args, "--kubeconfig", kubeconfig+".missing")...); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("no kubeconfig: %v", err)
	}
}

func TestCopyRefusesFlagsThatCannotWork(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":            {nil, `--from "" must be cluster, embedded:FOLDER or etcd:URL,URL`},
		"one storage":        {[]string{"--from", "cluster", "--to", "cluster"}, "are the same storage"},
		"one folder":         {[]string{"--from", "embedded:" + folder, "--to", "embedded:" + folder + "/."}, "are the same storage"},
		"no etcd":            {[]string{"--from", "embedded:" + folder, "--to", "cluster"}, "has no embedded etcd"},
		"no URL":             {[]string{"--from", "etcd:etcd.example", "--to", "cluster"}, `"etcd.example" must be an https, http or unix URL`},
		"a certificate only": {[]string{"--from", "cluster", "--to", "etcd:https://etcd.example", "--etcd-certfile", "x"}, "must be given together"},
	} {
		_, err := run(t, test.args...)
		if _, usage := errors.AsType[*serving.UsageError](err); !usage || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q as an error of usage", name, err, test.want)
		}
	}
}
