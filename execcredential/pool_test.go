package execcredential_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func TestEqualConfigsShareASource(t *testing.T) {
	pool, _ := newPool(t, execcredential.Options{})
	base := execcredential.Config{
		Command: "login", Args: []string{"a", "b"}, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, ProvideClusterInfo: true,
		Env:     []execcredential.EnvVar{{Name: "A", Value: "b"}},
		Cluster: execcredential.Cluster{Server: "https://a", CertificateAuthorityData: []byte("CA"), Extension: []byte(`{"a":1,"b":2}`)},
	}
	first := sourceOf(t, pool, base)
	if sourceOf(t, pool, base) != first {
		t.Error("equal configs have two sources")
	}
	reordered := base
	reordered.Cluster.Extension = []byte(`{ "b": 2, "a": 1 }`)
	if sourceOf(t, pool, reordered) != first {
		t.Error("the order of keys makes two sources")
	}
	for name, change := range map[string]func(*execcredential.Config){
		"command":   func(c *execcredential.Config) { c.Command = "logout" },
		"arguments": func(c *execcredential.Config) { c.Args = []string{"ab"} },
		"split": func(c *execcredential.Config) {
			c.Args = []string{"a"}
			c.Env = []execcredential.EnvVar{{Name: "b", Value: ""}}
		},
		"variable":  func(c *execcredential.Config) { c.Env = []execcredential.EnvVar{{Name: "A", Value: "c"}} },
		"shifted":   func(c *execcredential.Config) { c.Env = []execcredential.EnvVar{{Name: "Ab", Value: ""}} },
		"version":   func(c *execcredential.Config) { c.APIVersion = execcredential.V1Beta1 },
		"mode":      func(c *execcredential.Config) { c.InteractiveMode = execcredential.IfAvailable },
		"server":    func(c *execcredential.Config) { c.Cluster.Server = "https://b" },
		"CA":        func(c *execcredential.Config) { c.Cluster.CertificateAuthorityData = []byte("other") },
		"insecure":  func(c *execcredential.Config) { c.Cluster.InsecureSkipTLSVerify = true },
		"extension": func(c *execcredential.Config) { c.Cluster.Extension = []byte(`{"a":1}`) },
		"folder":    func(c *execcredential.Config) { c.Folder = "/" },
		"stdin":     func(c *execcredential.Config) { c.StdinUnavailable = "used" },
		"policy":    func(c *execcredential.Config) { c.Policy.Type = execcredential.DenyAll },
		"secrets":   func(c *execcredential.Config) { c.Policy.SecretEnv = []string{"A"} },
		"timeout":   func(c *execcredential.Config) { c.Timeout = 1 },
		"patience":  func(c *execcredential.Config) { c.InteractiveTimeout = 1 },
		"no info":   func(c *execcredential.Config) { c.ProvideClusterInfo = false },
	} {
		changed := base
		change(&changed)
		if sourceOf(t, pool, changed) == first {
			t.Errorf("%s: another config has the same source", name)
		}
	}
	base.ProvideClusterInfo = false
	without := sourceOf(t, pool, base)
	base.Cluster.Server = "https://b"
	if sourceOf(t, pool, base) != without {
		t.Error("a cluster that is not passed to the program makes two sources")
	}
}

func TestPoolIsBounded(t *testing.T) {
	pool, _ := newPool(t, execcredential.Options{MaxSources: 3})
	config := func(i int) execcredential.Config {
		return execcredential.Config{Command: fmt.Sprintf("login-%d", i), APIVersion: execcredential.V1, InteractiveMode: execcredential.Never}
	}
	first := sourceOf(t, pool, config(0))
	sourceOf(t, pool, config(1))
	sourceOf(t, pool, config(2))
	if sourceOf(t, pool, config(0)) != first {
		t.Error("forgotten too early")
	}
	for i := 1; i < 10_000; i++ {
		sourceOf(t, pool, config(i))
	}
	if pool.Len() != 3 {
		t.Errorf("%d sources are remembered", pool.Len())
	}
	if sourceOf(t, pool, config(0)) == first {
		t.Error("not forgotten")
	}
}

// Configs that are gone leave no memory behind.
func TestNoMemoryIsLeft(t *testing.T) {
	pool, _ := newPool(t, execcredential.Options{MaxSources: 10})
	large := strings.Repeat("A", 64<<10)
	fill := func(n int) {
		for i := range n {
			source := sourceOf(t, pool, execcredential.Config{
				Command: "login", Args: []string{fmt.Sprint(i)}, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, ProvideClusterInfo: true,
				Cluster: execcredential.Cluster{Server: "https://a", CertificateAuthorityData: []byte(large)},
			})
			source.Transport(nil)
		}
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fill(20)
	before := heap()
	fill(1000) // 64 MiB
	if after := heap(); after > before+8<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}

// settle waits until there are so few goroutines, and returns how many there are: those of the HTTP library end a moment after their
// connection.
func settle(want int) int {
	for range 500 {
		if runtime.NumGoroutine() <= want {
			break
		}
		runtime.Gosched()
		time.Sleep(2 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// However a run ends, no goroutine of it is left, and no file is open that was not before.
func TestRunsLeaveNothingBehind(t *testing.T) {
	pool, clock := newPool(t, execcredential.Options{})
	for name, answer := range map[string]exectest.Answer{
		"good":         exectest.Token("abc", time.Time{}),
		"fails":        {ExitCode: 1, Stderr: "no network"},
		"floods":       {Flood: true},
		"hangs":        {Hang: true, LeaveBehind: true},
		"leaves":       {LeaveBehind: true, ExitCode: 1},
		"bad output":   {Stdout: "{"},
		"never starts": {},
	} {
		t.Run(name, func(t *testing.T) {
			provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return answer })
			config := provider.Config()
			if name == "never starts" {
				config.Command = "/no/such/program"
			}
			source := sourceOf(t, pool, config)
			run := func() {
				done := make(chan bool)
				go func() {
					_, _ = source.Refresh(context.Background())
					close(done)
				}()
				if answer.Hang {
					clock.WaitForTimers(1)
					clock.Advance(time.Minute)
				}
				<-done
				for _, call := range provider.Calls() {
					<-call.Ended
				}
				for answer.LeaveBehind && len(provider.LeftBehind()) > 0 {
					<-(<-provider.LeftBehind()).Ended
				}
			}
			before := runtime.NumGoroutine()
			run()
			settle(before)
			files := openFiles()
			for range 5 {
				run()
			}
			if after := settle(before); after > before {
				buffer := make([]byte, 1<<20)
				t.Errorf("%d goroutines before, %d after:\n%s", before, after, buffer[:runtime.Stack(buffer, true)])
			}
			// A pipe is closed once its last writer has ended, which the kernel may report a moment later.
			for deadline := time.Now().Add(time.Minute); openFiles() > files && time.Now().Before(deadline); {
				time.Sleep(2 * time.Millisecond)
			}
			if after := openFiles(); after > files {
				t.Errorf("%d files open before, %d after", files, after)
			}
		})
	}
}

// openFiles is how many files this process has open, where the system lists them.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// After Close there is no goroutine more than before, and no connection.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := settle(2)
	func() {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") }))
		defer server.Close()
		clock := exectest.NewClock(start)
		pool := need(execcredential.NewPool(execcredential.Options{Clock: clock, RefreshAhead: time.Minute, Stderr: io.Discard}))(t)
		for i := range 20 {
			source := pool.SourceOf(&script{now: clock.Now, next: func(run int) (execcredential.Material, error) {
				return execcredential.Material{Token: fmt.Sprint(i), Expires: clock.Now().Add(time.Hour)}, nil
			}})
			client := &http.Client{Transport: source.Transport(server.Client().Transport.(*http.Transport))}
			response := need(client.Get(server.URL))(t)
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if i == 10 {
				clock.Advance(59*time.Minute + 30*time.Second)
			}
		}
		must(t, pool.Close())
		server.Client().Transport.(*http.Transport).CloseIdleConnections()
	}()
	if after := settle(before); after > before {
		buffer := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, after, buffer[:runtime.Stack(buffer, true)])
	}
}
