package clientgo_test

import (
	"context"
	"crypto/tls"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/metrics"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/execcredential/exectest"
)

// gauge is where client-go's metrics report the end of a certificate.
type gauge struct{ atomic.Pointer[time.Time] }

func (g *gauge) Set(end *time.Time) { g.Store(end) }

func (g *gauge) is(want time.Time) bool {
	end := g.Load()
	return end == nil && want.IsZero() || end != nil && end.Equal(want)
}

type ages []time.Duration

func (a *ages) Observe(age time.Duration) { *a = append(*a, age) }

// client-go's metrics of certificates have what its own plugin would report: the end of the first to end, and the age of one that was
// replaced. Unlike there, that of a source which is no longer referenced is forgotten.
func TestMetricsOfCertificates(t *testing.T) {
	var end gauge
	var old ages
	oldExpiry, oldAge := metrics.ClientCertExpiry, metrics.ClientCertRotationAge
	metrics.ClientCertExpiry, metrics.ClientCertRotationAge = &end, &old
	defer func() { metrics.ClientCertExpiry, metrics.ClientCertRotationAge = oldExpiry, oldAge }()

	now := time.Now().Truncate(time.Second)
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }
	authority := exectest.NewAuthority(t)
	issue := func(until time.Time) *tls.Certificate {
		certificate, key := authority.Issue("jane", hour(-5), until)
		pair := need(tls.X509KeyPair([]byte(certificate), []byte(key)))(t)
		return &pair
	}
	var seen clientgo.Metrics
	newPool := func() *execcredential.Pool {
		return need(execcredential.NewPool(execcredential.Options{OnRun: seen.Run}))(t)
	}
	one, two := newPool(), newPool()
	defer one.Close()
	defer two.Close()
	// source is refreshed once for each certificate; nil is for a token.
	source := func(pool *execcredential.Pool) (*execcredential.Source, func(*tls.Certificate, time.Time)) {
		var next *tls.Certificate
		s := pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) {
			m := execcredential.Material{Certificate: next}
			if next == nil {
				m.Token = "token"
			}
			return execcredential.NewCredential(m, time.Now())
		}))
		return s, func(certificate *tls.Certificate, want time.Time) {
			t.Helper()
			next = certificate
			need(s.Refresh(t.Context()))(t)
			for deadline := time.Now().Add(time.Minute); !end.is(want); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("the gauge is %v, want %v", end.Load(), want)
				}
			}
		}
	}
	first, refreshFirst := source(one)
	second, refreshSecond := source(two)
	refreshFirst(issue(hour(3)), hour(3))
	refreshSecond(issue(hour(2)), hour(2))
	if len(old) != 0 {
		t.Errorf("ages %v before one was replaced", old)
	}
	refreshSecond(issue(hour(4)), hour(3))
	if len(old) != 1 || old[0] < 5*time.Hour || old[0] > 6*time.Hour {
		t.Errorf("ages %v, want one of five hours", old)
	}
	refreshFirst(nil, hour(4)) // the end of a token does not count
	refreshFirst(issue(hour(1)), hour(1))
	runtime.KeepAlive(first)
	first, refreshFirst = nil, nil
	for deadline := time.Now().Add(time.Minute); !end.is(hour(4)); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the gauge is %v after its source is gone, want %v", end.Load(), hour(4))
		}
		runtime.GC()
	}
	seen.Reset()
	if !end.is(time.Time{}) {
		t.Errorf("the gauge is %v after all is forgotten", end.Load())
	}
	runtime.KeepAlive(second)
}
