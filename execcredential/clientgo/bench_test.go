package clientgo_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/execcredential/exectest"
)

// both runs f with this library, and with client-go's own plugin. f gets the function that prepares a rest.Config.
func both(b *testing.B, f func(b *testing.B, through func(*rest.Config) *rest.Config)) {
	b.Run("execcredential", func(b *testing.B) {
		pool, err := execcredential.NewPool(execcredential.Options{Stderr: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		defer pool.Close()
		f(b, func(c *rest.Config) *rest.Config {
			out, err := clientgo.Config(pool, c)
			if err != nil {
				b.Fatal(err)
			}
			return out
		})
	})
	b.Run("client-go", func(b *testing.B) { f(b, func(c *rest.Config) *rest.Config { return c }) })
}

var unique atomic.Int64

// distinct is a config that no plugin was made for yet.
func distinct(p *exectest.Provider) *rest.Config {
	c := &rest.Config{Host: "https://127.0.0.1:1", ExecProvider: execProvider(p)}
	c.ExecProvider.Args = []string{fmt.Sprint(unique.Add(1))}
	return c
}

type stub struct{ status func(*http.Request) int }

func (s stub) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status(r), Body: http.NoBody, Request: r}, nil
}

func ok(*http.Request) int { return 200 }

// One request with a credential that is there. Each makes a request of its own first: client-go writes into that of the caller.
// CPU is less disturbed than time by what else the machine does.
func BenchmarkCachedRequest(b *testing.B) {
	provider := exectest.NewProvider(b, token)
	template, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1:1/api", nil)
	template.Header.Set("Accept", "application/json")
	template.Header.Set("User-Agent", "bench")
	many := func(b *testing.B, do func(*http.Request) error) {
		if err := do(template.Clone(context.Background())); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.ResetTimer()
		before := used(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := do(template.Clone(context.Background())); err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(float64(used(b)-before)/float64(b.N), "cpu-ns/op")
	}
	both(b, func(b *testing.B, through func(*rest.Config) *rest.Config) {
		rt, err := rest.HTTPWrappersForConfig(through(distinct(provider)), stub{ok})
		if err != nil {
			b.Fatal(err)
		}
		many(b, func(r *http.Request) error { _, err := rt.RoundTrip(r); return err })
	})
	b.Run("clone", func(b *testing.B) { many(b, func(*http.Request) error { return nil }) })
	b.Run("stub", func(b *testing.B) {
		rt, err := rest.HTTPWrappersForConfig(&rest.Config{}, stub{ok})
		if err != nil {
			b.Fatal(err)
		}
		many(b, func(r *http.Request) error { _, err := rt.RoundTrip(r); return err })
	})
}

// From a rest.Config with certificate authorities of 200 KiB that the plugin is passed, to the configuration of a transport.
func BenchmarkSetUp(b *testing.B) {
	ca := largeCA(b)
	both(b, func(b *testing.B, through func(*rest.Config) *rest.Config) {
		config := &rest.Config{
			Host:            "https://127.0.0.1:1",
			TLSClientConfig: rest.TLSClientConfig{CAData: ca},
			ExecProvider:    &api.ExecConfig{Command: "login", APIVersion: execcredential.V1, InteractiveMode: api.NeverExecInteractiveMode, ProvideClusterInfo: true},
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := through(config).TransportConfig(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Memory that stays for each distinct config: of a client that is in use, and of one that is no longer referenced.
func BenchmarkDistinctConfigs(b *testing.B) {
	for name, inUse := range map[string]bool{"used": true, "forgotten": false} {
		b.Run(name, func(b *testing.B) {
			both(b, func(b *testing.B, through func(*rest.Config) *rest.Config) {
				var kept []*transport.Config
				before := heap()
				for b.Loop() {
					config := &rest.Config{Host: "https://127.0.0.1:1", ExecProvider: &api.ExecConfig{Command: "login", Args: []string{fmt.Sprint(unique.Add(1))},
						APIVersion: execcredential.V1, InteractiveMode: api.NeverExecInteractiveMode}}
					c, err := through(config).TransportConfig()
					if err != nil {
						b.Fatal(err)
					}
					if inUse {
						kept = append(kept, c)
					}
				}
				after := heap()
				b.ReportMetric(max(0, float64(after)-float64(before))/float64(b.N), "B-kept/config")
				runtime.KeepAlive(kept)
			})
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// storm is requests at once.
type storm struct {
	answer func(call exectest.Call, run int) exectest.Answer
	status func(*http.Request) int
	// before is set if one request comes before all others.
	before bool
}

const (
	atOnce   = 100
	previous = "Previous" // a header of the request that comes before
)

var storms = map[string]storm{
	"first":   {status: ok, answer: func(exectest.Call, int) exectest.Answer { return exectest.Token("token-1", time.Time{}) }},
	"failure": {status: ok, answer: func(exectest.Call, int) exectest.Answer { return exectest.Answer{ExitCode: 1} }},
	"expired": {status: ok, answer: func(exectest.Call, int) exectest.Answer { return exectest.Token("token-1", time.Now().Add(-time.Hour)) }},
	"revoked": {
		before: true,
		answer: func(_ exectest.Call, run int) exectest.Answer {
			return exectest.Token(fmt.Sprintf("token-%d", run), time.Time{})
		},
		status: func(r *http.Request) int {
			if r.Header.Get("Authorization") == "Bearer token-1" && r.Header.Get(previous) == "" {
				return http.StatusUnauthorized
			}
			return http.StatusOK
		},
	},
}

// 100 requests at once: with nothing there yet, against a program that fails, against one whose output has expired already, and
// against a server that has revoked the token. Time is from the first to the last of them; making the clients is not in it.
func BenchmarkStorm(b *testing.B) {
	for name, s := range storms {
		b.Run(name, func(b *testing.B) {
			both(b, func(b *testing.B, through func(*rest.Config) *rest.Config) {
				runs, failures := 0, 0
				for b.Loop() {
					b.StopTimer()
					r, f := s.blow(b, through)
					runs, failures = runs+r, failures+f
				}
				b.ReportMetric(float64(runs)/float64(b.N), "runs/storm")
				b.ReportMetric(float64(failures)/float64(b.N), "failures/storm")
			})
		})
	}
}

// blow sends the requests through a client of its own, with the timer of b running meanwhile and afterwards.
func (s storm) blow(b *testing.B, through func(*rest.Config) *rest.Config) (runs, failures int) {
	var run atomic.Int32
	provider := exectest.NewProvider(b, func(call exectest.Call) exectest.Answer { return s.answer(call, int(run.Add(1))) })
	rt, err := rest.HTTPWrappersForConfig(through(distinct(provider)), stub{s.status})
	if err != nil {
		b.Fatal(err)
	}
	request := func(header http.Header) bool {
		r, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1:1/api", nil)
		r.Header = header
		response, err := rt.RoundTrip(r)
		return err == nil && response.StatusCode == http.StatusOK
	}
	if s.before && !request(http.Header{previous: {"yes"}}) {
		b.Fatal("the request before the storm failed")
	}
	already := provider.Runs()
	var failed atomic.Int32
	var all sync.WaitGroup
	b.StartTimer()
	for range atOnce {
		all.Go(func() {
			if !request(http.Header{}) {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	return provider.Runs() - already, int(failed.Load())
}
