package workloadidentity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/workloadidentity"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeapi"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

const static = `{"token": "geheim"}`

// asProgram makes the test's own binary one that a kubeconfig's user names.
const asProgram = "CREDENCE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
		os.Exit(m.Run())
	case "token":
		if os.Getenv(kubeconfig.Guard) == "" {
			fmt.Fprintln(os.Stderr, "no guard")
			os.Exit(1)
		}
		fmt.Println(`{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "geheim"}}`)
	case "hang":
		if err := os.WriteFile(os.Getenv("RUNS"), nil, 0o600); err == nil {
			time.Sleep(time.Hour)
		}
	case "loop":
		// Like an opaque script that runs the provider again.
		runs, err := os.OpenFile(os.Getenv("RUNS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = runs.WriteString("run\n")
		}
		if err == nil {
			_, err = kubeconfig.Choice{Path: os.Getenv("LOOP"), Environment: os.Getenv}.Read()
		}
		if errors.Is(err, kubeconfig.ErrLeadsBack) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(7)
		}
		os.Exit(8)
	}
}

type screen struct {
	mu   sync.Mutex
	text string
}

func (s *screen) Notice(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += fmt.Sprintf(format, args...) + "\n"
}
func (s *screen) OpenURL(string) error { return nil }

func read(t *testing.T, choice kubeconfig.Choice) kubeconfig.Access {
	t.Helper()
	access := testkit.Need(choice.Read())(t)
	return access
}

func source(t *testing.T, settings workloadidentity.Settings, access kubeconfig.Access) *workloadidentity.Source {
	t.Helper()
	source := testkit.Need(workloadidentity.New(settings, access, kubeapi.Tokens))(t)
	return source
}

func obtain(t *testing.T, s *workloadidentity.Source) (credential.Credential, string, error) {
	t.Helper()
	var screen screen
	got, state, err := s.Obtain(t.Context(), credential.Request{Terminal: &screen})
	if state != nil {
		t.Errorf("state %s", state)
	}
	return got, screen.text, err
}

func TestTokenWithItsExpiry(t *testing.T) {
	for what, from := range map[string]func(*cluster) kubeconfig.Choice{
		"kubeconfig": func(c *cluster) kubeconfig.Choice { return c.choice(static) }, "pod": (*cluster).pod,
	} {
		t.Run(what, func(t *testing.T) {
			cluster := newCluster(t)
			access := read(t, from(cluster))
			got, shown, err := obtain(t, source(t, workloadidentity.Settings{Name: "deployer"}, access))
			if err != nil || got.Token.Reveal() != "token-1" || !got.Expires.Equal(noon.Add(time.Hour)) || shown != "Warning: shortened\n" {
				t.Fatalf("got %q until %s, %q, %v", got.Token.Reveal(), got.Expires, shown, err)
			}
			got, _, err = obtain(t, source(t, workloadidentity.Settings{Name: "deployer", Namespace: "team", Duration: 15 * time.Minute, Context: "sa/robot"}, access))
			if err != nil || !got.Expires.Equal(noon.Add(15*time.Minute)) {
				t.Fatalf("until %s, %v", got.Expires, err)
			}
			want := []v1alpha1.TokenRequestSpec{{}, {
				Duration:      &metav1.Duration{Duration: 15 * time.Minute},
				ContextObject: &v1alpha1.ContextObject{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "team", Name: "robot", UID: "uid-1"},
			}}
			if diff := cmp.Diff(want, cluster.issued); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Eight clients at once, and one more later: one token, until it expires.
func TestOneTokenForAll(t *testing.T) {
	cluster := newCluster(t)
	source := source(t, workloadidentity.Settings{Name: "deployer"}, read(t, cluster.choice(static)))
	provider := credential.Provider{Folder: filepath.Join(t.TempDir(), "cache"), Now: cluster.clock, Terminal: &screen{}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := provider.Serve(t.Context(), source, credential.ExecInfo{APIVersion: credential.V1})
			if err != nil || got.Token.Reveal() != "token-1" {
				t.Errorf("got %q, %v", got.Token.Reveal(), err)
			}
		})
	}
	all.Wait()
	if got, ok := provider.Kept(source.Key(), credential.ExecInfo{APIVersion: credential.V1}); !ok || got.Token.Reveal() != "token-1" {
		t.Error("the stored token is not found by the key alone")
	}
	cluster.mu.Lock()
	cluster.now = noon.Add(time.Hour)
	cluster.mu.Unlock()
	if got, err := provider.Serve(t.Context(), source, credential.ExecInfo{APIVersion: credential.V1}); err != nil || got.Token.Reveal() != "token-2" {
		t.Errorf("got %q, %v", got.Token.Reveal(), err)
	}
	if len(cluster.issued) != 2 {
		t.Errorf("%d tokens", len(cluster.issued))
	}
}

func TestWhatIsRefusedAndWhatIsAnOutage(t *testing.T) {
	status := func(code int32, message string) func(*cluster) {
		return func(c *cluster) { c.failure = &metav1.Status{Code: code, Message: message} }
	}
	cases := map[string]struct {
		prepare func(*cluster)
		want    string
		refused bool
	}{
		"no such identity": {func(c *cluster) { clear(c.identities) }, "kubectl get workloadidentities -n team", true},
		"no such account":  {func(c *cluster) { clear(c.accounts) }, "kubectl get serviceaccounts -n team", true},
		"not installed":    {status(404, "the server could not find the requested resource"), "does not serve workloadidentities.authentication.gardener.cloud", true},
		"not allowed":      {status(403, "no"), `user "asker" of the kubeconfig needs the verb "create" on "workloadidentities/token.authentication.gardener.cloud" in namespace "team"`, true},
		"not logged in":    {status(401, "Unauthorized"), `the credentials of user "asker" of the kubeconfig are missing, wrong or expired`, true},
		"created anew":     {status(409, "uid"), "look at it, and try again", true},
		"invalid":          {status(422, "spec.duration: too short"), "spec.duration: too short: correct what is named", true},
		"too many":         {status(429, "slow down"), "cannot answer (429)", false},
		"no key":           {status(503, "no key may sign"), "cannot answer (503): no key may sign", false},
		"broken":           {status(500, "a\nb"), "(500): a b", false},
		"gone":             {func(c *cluster) { c.server.Close() }, "request to the API server https://", false},
		"no token":         {func(c *cluster) { c.change = func(r *v1alpha1.TokenRequest) { r.Status.Token = "" } }, "holds no token", false},
		"no expiry": {func(c *cluster) {
			c.change = func(r *v1alpha1.TokenRequest) { r.Status.ExpirationTimestamp = metav1.Time{} }
		}, "lacks the token's expiry", false},
		"not by this authority": {func(c *cluster) {}, "certificate", false},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			cluster := newCluster(t)
			access := read(t, cluster.choice(static))
			c.prepare(cluster)
			settings := workloadidentity.Settings{Name: "deployer"}
			switch what {
			case "no such account":
				settings.Context = "serviceaccount/robot"
			case "not by this authority":
				choice := cluster.choice(static)
				text := testkit.Need(os.ReadFile(choice.Path))(t)
				cluster.put(choice.Path, strings.ReplaceAll(string(text), "certificate-authority-data", "nothing"))
				access = read(t, choice)
			}
			got, _, err := obtain(t, source(t, settings, access))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "WorkloadIdentity team/deployer") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if errors.Is(err, credential.ErrRefused) != c.refused || errors.Is(err, credential.ErrNeedsPerson) || !got.Token.IsZero() {
				t.Errorf("refused must be %t: %v", c.refused, err)
			}
			if err != nil && strings.Contains(err.Error(), "geheim") {
				t.Error("a secret is in the error")
			}
		})
	}
}

// execUser is a user that runs this test's own binary.
func execUser(t *testing.T, environment map[string]string) string {
	t.Helper()
	self := testkit.Need(os.Executable())(t)
	var env []map[string]string
	for name, value := range environment {
		env = append(env, map[string]string{"name": name, "value": value})
	}
	text := testkit.Need(json.Marshal(map[string]any{"exec": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "command": self, "env": env, "interactiveMode": "IfAvailable",
	}}))(t)
	return string(text)
}

func TestUserOfAnotherProgram(t *testing.T) {
	cluster := newCluster(t)
	got, _, err := obtain(t, source(t, workloadidentity.Settings{Name: "deployer"}, read(t, cluster.choice(execUser(t, map[string]string{asProgram: "token"})))))
	if err != nil || got.Token.Reveal() != "token-1" {
		t.Errorf("got %q, %v", got.Token.Reveal(), err)
	}
}

// A hanging program does not block a canceled client.
func TestUserOfAProgramThatHangs(t *testing.T) {
	cluster := newCluster(t)
	runs := filepath.Join(t.TempDir(), "runs")
	s := source(t, workloadidentity.Settings{Name: "deployer"}, read(t, cluster.choice(execUser(t, map[string]string{asProgram: "hang", "RUNS": runs}))))
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(runs); err == nil || ctx.Err() != nil {
				leave()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, _, err := s.Obtain(ctx, credential.Request{Terminal: &screen{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A script that runs the provider, whatever its name, is refused there, and run once.
func TestGuardCatchesWhatNamesDoNot(t *testing.T) {
	cluster := newCluster(t)
	runs := filepath.Join(t.TempDir(), "runs")
	choice := cluster.choice(execUser(t, map[string]string{asProgram: "loop", "RUNS": runs, "LOOP": "LATER"}))
	text, err := os.ReadFile(choice.Path)
	testkit.Must(t, err)
	path, err := json.Marshal(choice.Path)
	testkit.Must(t, err)
	cluster.put(choice.Path, strings.ReplaceAll(string(text), `"LATER"`, string(path)))
	_, _, err = obtain(t, source(t, workloadidentity.Settings{Name: "deployer"}, read(t, choice)))
	if err == nil || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("not refused: %v", err)
	}
	if ran, err := os.ReadFile(runs); err != nil || string(ran) != "run\n" {
		t.Errorf("ran %q, %v", ran, err)
	}
	if len(cluster.issued) != 0 {
		t.Error("a token was issued")
	}
}

// A stored credential is found by the first reading: it must not come from another cluster or user.
func TestKubeconfigThatChangesMeanwhile(t *testing.T) {
	cluster := newCluster(t)
	for what, change := range map[string][2]string{"server": {cluster.server.URL, "https://other.example"}, "user": {`"user": "asker"`, `"user": "other"`}, "context": {`"name": "c", "context"`, `"name": "d", "context"`}} {
		choice := cluster.choice(static)
		access := read(t, choice)
		text := testkit.Need(os.ReadFile(choice.Path))(t)
		cluster.put(choice.Path, strings.ReplaceAll(strings.Replace(string(text), `"users": [`, `"users": [{"name": "other", "user": {"token": "x"}}, `, 1), change[0], change[1]))
		if _, _, err := obtain(t, source(t, workloadidentity.Settings{Name: "deployer"}, access)); err == nil || !strings.Contains(err.Error(), "read the kubeconfig") {
			t.Errorf("another %s: %v", what, err)
		}
	}
	if len(cluster.users) != 0 {
		t.Errorf("requested by %q", cluster.users)
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	for _, settings := range []workloadidentity.Settings{
		{}, {Name: "a/b"}, {Name: ".."}, {Name: "a", Namespace: "b/c"}, {Name: "a", Duration: -1}, {Name: "a", Context: "robot"},
		{Name: "a", Context: "pod/x"}, {Name: "a", Context: "serviceaccount/"}, {Name: "a", Context: "serviceaccount/../x"},
	} {
		if _, err := workloadidentity.New(settings, kubeconfig.Access{Namespace: "n"}, nil); err == nil {
			t.Errorf("%+v is taken", settings)
		}
	}
}

func TestKeyHoldsWhatDecides(t *testing.T) {
	key := func(s workloadidentity.Settings, access kubeconfig.Access) map[string]string {
		return source(t, s, access).Key()
	}
	access := kubeconfig.Access{Server: "https://c", User: "asker", Namespace: "team"}
	all := workloadidentity.Settings{Name: "deployer", Duration: 90 * time.Minute, Context: "serviceaccounts/robot"}
	want := map[string]string{
		"source": "workload-identity", "namespace": "team", "name": "deployer", "duration": "1h30m0s", "context": "serviceaccounts/robot",
		"server": "https://c", "user": "asker",
	}
	if diff := cmp.Diff(want, key(all, access)); diff != "" {
		t.Error(diff)
	}
	same := all
	same.Namespace, same.Context = "team", "SA/robot"
	if diff := cmp.Diff(want, key(same, access)); diff != "" {
		t.Error(diff)
	}
	seen := map[string]bool{}
	for _, settings := range []workloadidentity.Settings{
		{Name: "a"}, {Name: "b"}, {Name: "a", Namespace: "n"}, {Name: "a", Duration: time.Hour}, {Name: "a", Context: "sa/x"}, {Name: "a", Context: "sa/y"},
	} {
		seen[fmt.Sprint(key(settings, access))] = true
	}
	for _, other := range []kubeconfig.Access{{Server: "https://d", User: "asker", Namespace: "team"}, {Server: "https://c", User: "joe", Namespace: "team"}, {Server: "https://c", Pod: "/p", Namespace: "team"}} {
		seen[fmt.Sprint(key(workloadidentity.Settings{Name: "a"}, other))] = true
	}
	if len(seen) != 9 {
		t.Errorf("%d keys of 9 credentials", len(seen))
	}
}

func TestConfigurationOfTheCluster(t *testing.T) {
	base := workloadidentity.Settings{Namespace: "n"}
	got, err := base.WithCluster(json.RawMessage(`{"workloadIdentity": {"name": "b", "namespace": "n", "duration": "30m", "context": "sa/x"}, "else": 1}`))
	if diff := cmp.Diff(workloadidentity.Settings{Name: "b", Namespace: "n", Duration: 30 * time.Minute, Context: "sa/x"}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, raw := range []string{"", "null", "[]", `{"oidc": {}}`} {
		if got, err := base.WithCluster(json.RawMessage(raw)); err != nil || got != base {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"workloadIdentity": {"nam": "x"}}`, `{"workloadIdentity": {"duration": "x"}}`, `{"workloadIdentity": {"duration": "0s"}}`, `{"workloadIdentity": 1}`} {
		if _, err := base.WithCluster(json.RawMessage(raw)); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

// The client's cluster may be malicious: it must not get the token of another identity.
func TestAClusterSaysNothingElse(t *testing.T) {
	base := workloadidentity.Settings{Name: "a", Namespace: "n", Duration: time.Hour, Context: "sa/x"}
	for _, raw := range []string{`{"name": "b"}`, `{"namespace": "m"}`, `{"duration": "2h"}`, `{"context": "sa/y"}`} {
		if got, err := base.WithCluster(json.RawMessage(`{"workloadIdentity": ` + raw + `}`)); err == nil {
			t.Errorf("%s is taken: %+v", raw, got)
		}
	}
}
