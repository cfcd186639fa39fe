//go:build unix

package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/test/testkit"
)

func TestUpInTheForegroundUntilCtrlC(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	first := l.startUp()
	l.waitReady(first)

	endpoints := l.endpoints()
	want := map[string]string{
		"kubeconfig": l.dir.Path("kubeconfig"), "caFile": l.dir.Path("ca.crt"),
		"issuer":    fmt.Sprintf("https://127.0.0.1:%d/workload-identity", l.port+2),
		"jwks":      fmt.Sprintf("https://127.0.0.1:%d/workload-identity/jwks", l.port+2),
		"apiServer": fmt.Sprintf("https://127.0.0.1:%d", l.port),
	}
	got := map[string]string{
		"kubeconfig": endpoints.Kubeconfig, "caFile": endpoints.CAFile,
		"issuer": string(endpoints.Issuer), "jwks": endpoints.JWKS, "apiServer": endpoints.APIServer,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints.json (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"devcluster", "apiserver", "controller", "agent", "binder", "profiles", "webhook", "discovery"}, componentNames(l.dir)); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	checkModes(t, l)
	checkKubeconfig(t, l)
	l.waitHealthy()

	testkit.Must(t, first.Process.Signal(syscall.SIGINT))
	if err := l.waitEnd(first); err != nil {
		t.Errorf("up ended with %v after Ctrl-C\n%s", err, first.output)
	}
	l.nothingRuns()
	if names := componentNames(l.dir); len(names) != 0 {
		t.Errorf("endpoints.json has %v after the end", names)
	}
	wantEvents := []string{
		"start devcluster", "start agent", "start apiserver", "start binder", "start controller", "start discovery", "start profiles", "start webhook",
		"stop discovery", "stop webhook", "stop profiles", "stop binder", "stop agent", "stop controller", "stop apiserver", "stop devcluster",
	}
	events := l.recordedEvents()
	// They start side by side.
	slices.Sort(events[1:8])
	if diff := cmp.Diff(wantEvents, events); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}

	second := l.startUp()
	l.waitReady(second)
	if issuer := l.endpoints().Issuer; issuer != endpoints.Issuer {
		t.Errorf("issuer is %s after a restart and was %s", issuer, endpoints.Issuer)
	}
	var times startup
	if data, err := os.ReadFile(l.dir.StartupFile()); err != nil || json.Unmarshal(data, &times) != nil {
		t.Fatalf("startup.json: %v", err)
	}
	if times.Kind != "warm" || len(times.Parts) < 6 {
		t.Errorf("startup.json is %+v, want a warm start with every part", times)
	}
	testkit.Must(t, second.Process.Signal(syscall.SIGTERM))
	if err := l.waitEnd(second); err != nil {
		t.Errorf("up ended with %v after SIGTERM", err)
	}
	l.nothingRuns()
}

func checkModes(t *testing.T, l *laptop) {
	t.Helper()
	got := map[string]fs.FileMode{}
	for _, name := range []string{".", "kubeconfig", "endpoints.json", "pki/apiserver/tls.key", "pki/apiserver/client.key", "pki/discovery/kubeconfig"} {
		info := testkit.Need(os.Stat(l.dir.Path(name)))(t)
		got[name] = info.Mode().Perm()
	}
	want := map[string]fs.FileMode{
		".": 0o700, "kubeconfig": 0o600, "endpoints.json": 0o600,
		"pki/apiserver/tls.key": 0o600, "pki/apiserver/client.key": 0o600, "pki/discovery/kubeconfig": 0o600,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
}

func checkKubeconfig(t *testing.T, l *laptop) {
	t.Helper()
	config := testkit.Need(clientcmd.LoadFromFile(l.dir.Kubeconfig()))(t)
	if config.CurrentContext != "credence" {
		t.Errorf("current context is %q, want credence", config.CurrentContext)
	}
}

func TestUpDetachedUntilDown(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	output := l.mustCall(l.upArguments("--detach")...)
	for _, text := range []string{"self-check", "Try next:", "token create demo", l.endpoints().JWKS} {
		if !strings.Contains(output, text) {
			t.Errorf("up --detach does not show %q:\n%s", text, output)
		}
	}
	if status := l.waitHealthy("-o", "yaml"); !strings.Contains(status, "\nhealthy: true\n") {
		t.Errorf("status prints %s", status)
	}
	status := l.waitHealthy("-o", "json")
	var said report
	if err := json.Unmarshal([]byte(status), &said); err != nil || !said.Healthy || len(said.Parts) != 11 {
		t.Errorf("status prints %s (%v), want eleven healthy parts", status, err)
	}
	l.mustFail([]string{"in use by another credence up (pid ", "credence down"}, l.upArguments("--detach")...)
	l.mustFail([]string{"in use by another credence up (pid ", "credence down"}, l.upArguments()...)

	if output := l.mustCall("down", "--dir", string(l.dir)); !strings.Contains(output, "discovery has stopped") || !strings.Contains(output, "Stopped everything") {
		t.Errorf("down does not tell what it does:\n%s", output)
	}
	l.nothingRuns()
	if output := l.mustCall("down", "--dir", string(l.dir)); !strings.Contains(output, "Nothing runs in") {
		t.Errorf("down of nothing prints %q", output)
	}
	l.mustFail([]string{"nothing runs", "credence up"}, "status", "--dir", string(l.dir))
}

func TestTwoInstallationsSideBySide(t *testing.T) {
	t.Parallel()
	one, two := newLaptop(t), newLaptop(t)
	one.mustCall(one.upArguments("--detach")...)
	two.mustFail([]string{fmt.Sprintf("port %d", one.port), "kube-apiserver", string(one.dir)},
		"up", "--dir", string(two.dir), "--port", fmt.Sprint(one.port))
	two.mustCall(two.upArguments("--detach")...)
	one.waitHealthy()
	two.mustCall("down", "--dir", string(two.dir))
	one.waitHealthy()
	one.mustCall("down", "--dir", string(one.dir))
}

func TestAComponentThatDiesDuringTheStart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"devcluster", "apiserver", "controller", "agent", "binder", "profiles", "webhook", "discovery"} {
		for _, more := range [][]string{nil, {"--detach"}} {
			t.Run(name+strings.Join(more, ""), func(t *testing.T) {
				t.Parallel()
				l := newLaptop(t, misbehaviour+strings.ToUpper(name)+"=full")
				l.mustFail([]string{name, "no space left on device", l.dir.Log(name)}, l.upArguments(more...)...)
				l.nothingRuns()
			})
		}
	}
}

func TestCtrlCDuringTheStart(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--detach"}} {
		t.Run(strings.Join(more, ""), func(t *testing.T) {
			t.Parallel()
			l := newLaptop(t, misbehaviour+"APISERVER=unready")
			f := l.startUp(more...)
			l.eventually("apiserver is started", func() error {
				if strings.Contains(f.output.String(), "apiserver: starting") {
					return nil
				}
				return errors.New(f.output.String())
			})
			testkit.Must(t, f.Process.Signal(syscall.SIGINT))
			if err := l.waitEnd(f); err == nil || !strings.Contains(f.output.String(), "Error: interrupted") {
				t.Errorf("up ended with %v\n%s", err, f.output)
			}
			l.nothingRuns()
		})
	}
}

func TestTheSecondCtrlCKills(t *testing.T) {
	t.Parallel()
	l := newLaptop(t, misbehaviour+"DISCOVERY=stubborn")
	f := l.startUp()
	l.waitReady(f)
	interrupted := time.Now()
	testkit.Must(t, f.Process.Signal(syscall.SIGINT))
	l.eventually("up is stopping", func() error {
		if strings.Contains(f.output.String(), "once more") {
			return nil
		}
		return errors.New(f.output.String())
	})
	names := componentNames(l.dir)
	testkit.Must(t, f.Process.Signal(syscall.SIGINT))
	late := time.Since(interrupted) >= stopGrace // the machine has stalled, and the first Ctrl-C was enough
	if !late && !slices.Contains(names, "discovery") {
		t.Errorf("discovery was stopped by the first Ctrl-C: %v", names)
	}
	if err := l.waitEnd(f); err != nil {
		t.Errorf("up ended with %v", err)
	}
	if !late && !strings.Contains(f.output.String(), "killing what is left") {
		t.Errorf("up has waited for the grace to pass:\n%s", f.output)
	}
	l.nothingRuns()
}

func TestAKilledComponentIsStartedAgain(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	f := l.startUp()
	l.waitReady(f)
	for _, name := range []string{"apiserver", "devcluster"} {
		before, _ := l.endpoints().Component(name)
		testkit.Must(t, syscall.Kill(before.PID, syscall.SIGKILL))
		l.eventually(name+" is ready again", func() error {
			if strings.Contains(f.output.String(), name+" is ready again") {
				return nil
			}
			return errors.New(f.output.String())
		})
		after, found := l.endpoints().Component(name)
		if !found || after.PID == before.PID {
			t.Errorf("%s is %+v in endpoints.json, and was %+v before it was killed", name, after, before)
		}
		if !strings.Contains(f.output.String(), name+" ended (signal: killed), log file "+before.LogFile) {
			t.Errorf("up does not tell how %s ended:\n%s", name, f.output)
		}
	}
	l.waitHealthy()
	l.mustCall("down", "--dir", string(l.dir))
	if err := l.waitEnd(f); err != nil {
		t.Errorf("up ended with %v", err)
	}
}

func TestStatusNamesThePartThatDoesNotRun(t *testing.T) {
	t.Parallel()
	l := newLaptop(t, misbehaviour+"DISCOVERY=stubborn")
	f := l.startUp()
	l.waitReady(f)
	discovery, _ := l.endpoints().Component("discovery")
	// A stopped process is alive, and answers nothing.
	testkit.Must(t, syscall.Kill(discovery.PID, syscall.SIGSTOP))
	l.eventually("status names discovery alone", func() error {
		// A machine that stalls makes other parts late as well.
		output, err := l.call("status", "--dir", string(l.dir))
		if err != nil && strings.Contains(output, "not everything is healthy in "+string(l.dir)+": discovery, issuer\n") {
			return nil
		}
		return fmt.Errorf("%v: %s", err, output)
	})
	testkit.Must(t, syscall.Kill(discovery.PID, syscall.SIGCONT))
	l.waitHealthy()
}

func TestAKilledSupervisorLeavesNothing(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	f := l.startUp()
	l.waitReady(f)
	before := l.endpoints()
	testkit.Must(t, f.Process.Kill())
	if err := l.waitEnd(f); err == nil {
		t.Fatal("a killed process ended well")
	}
	if !process.ChildrenDieWithParent {
		t.Skip("this system cannot end children with their parent")
	}
	l.nothingRuns()
	l.mustFail([]string{"not everything is healthy", "up, devcluster, apiserver, controller, agent, binder, profiles, webhook, discovery"}, "status", "--dir", string(l.dir))
	l.mustCall("down", "--dir", string(l.dir))
	l.mustCall(l.upArguments("--detach")...)
	if after := l.endpoints(); after.Issuer != before.Issuer {
		t.Errorf("issuer is %s and was %s", after.Issuer, before.Issuer)
	}
	l.mustCall("down", "--dir", string(l.dir))
}

// orphan starts a component that no supervisor watches, as a crash leaves it on a system without parent-death signals.
func orphan(t *testing.T, l *laptop) {
	t.Helper()
	command := l.command()
	command.Path = l.bin + "/credence-devcluster"
	command.Args = []string{command.Path, "--dir", l.dir.Path("devcluster"), "--port", fmt.Sprint(l.port)}
	testkit.Must(t, command.Start())
	go func() { _ = command.Wait() }()
	l.eventually("the orphan listens", func() error {
		if listens(fmt.Sprint(l.port)) {
			return nil
		}
		return errors.New("it does not")
	})
}

func TestLeftoversAreEnded(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"up", "down"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			l := newLaptop(t)
			l.mustCall(l.upArguments("--detach")...)
			l.mustCall("down", "--dir", string(l.dir))
			orphan(t, l)
			if action == "up" {
				if output := l.mustCall(l.upArguments("--detach")...); !strings.Contains(output, "left by an earlier start") {
					t.Errorf("up does not tell that it ended a process:\n%s", output)
				}
				l.mustCall("down", "--dir", string(l.dir))
			} else if output := l.mustCall("down", "--dir", string(l.dir)); !strings.Contains(output, "Ended credence-devcluster (pid ") {
				t.Errorf("down does not tell that it ended a process:\n%s", output)
			}
			l.nothingRuns()
		})
	}
}

func TestDiscoveryIsVerifiedByTheAuthority(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	l.mustCall(l.upArguments("--detach")...)
	authority, err := os.ReadFile(l.dir.CAFile())
	testkit.Must(t, err)
	client, err := webClient(authority)
	testkit.Must(t, err)
	client.Timeout = patience
	body, err := fetch(t.Context(), client, l.endpoints().Issuer.ConfigurationURL())
	if err != nil || !strings.Contains(string(body), string(l.endpoints().Issuer)) {
		t.Errorf("discovery serves %s (%v)", body, err)
	}
	if err := ask(t.Context(), http.DefaultClient, l.endpoints().Issuer.ConfigurationURL()); err == nil {
		t.Error("a client that does not know the authority is content with the certificate")
	}
	l.mustCall("down", "--dir", string(l.dir))
}
