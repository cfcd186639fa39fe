package execcredential_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
)

// Whatever several goroutines do with a pool while its credentials expire, are refused, fail to come and lose their keys: nothing hangs,
// one run at a time is made of a source, no token travels with the certificate of another run, and calls after Close return ErrClosed.
// CREDENCE_STRESS is how long it takes, 300 ms without it.
func TestEverythingAtOnce(t *testing.T) {
	long := 300 * time.Millisecond
	if given, err := time.ParseDuration(os.Getenv("CREDENCE_STRESS")); err == nil {
		long = given
	}
	server := serve(t, true, all)
	var wrong atomic.Value
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		token, shown := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), common(r)
		if token != "" && shown != "anonymous" && token != shown || token == "" && shown == "anonymous" {
			wrong.Store(fmt.Sprintf("token %q with the certificate of %q", token, shown))
		}
		switch rand.IntN(8) {
		case 0, 1:
			w.WriteHeader(http.StatusUnauthorized)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.Header().Set("Connection", "close") // GOAWAY
		}
	})
	key := newDevice(t)
	var names [200][]byte // of certificates for the device, and pairs in memory
	var pairs [200]*tls.Certificate
	for i := range names {
		block, _ := pem.Decode([]byte(server.authority.IssueFor(key.Public(), fmt.Sprint(i), start.Add(-time.Hour), start.Add(1e6*time.Hour))))
		names[i] = block.Bytes
		if i%10 == 0 {
			pairs[i] = server.pair(t, fmt.Sprint(i))
		} else {
			pairs[i] = pairs[i-i%10]
		}
	}
	for began := time.Now(); time.Since(began) < long; {
		pool, clock := newPool(t, execcredential.Options{RefreshAhead: time.Minute, MaxSources: 2})
		source := func() *execcredential.Source {
			var running atomic.Int32
			var serial atomic.Int32
			return pool.SourceOf(execcredential.ProviderFunc(func(ctx context.Context) (*execcredential.Credential, error) {
				if running.Add(1) != 1 {
					wrong.Store("two runs at once")
				}
				defer running.Add(-1)
				i := int(serial.Add(1)) % len(names)
				m := execcredential.Material{Token: fmt.Sprint(i)}
				switch rand.IntN(8) {
				case 0:
					return nil, errors.New("no network")
				case 1:
					panic("broken")
				case 2:
					return nil, nil
				case 3:
					m.Expires = start.Add(-time.Hour)
				case 4:
					m.Expires = clock.Now().Add(time.Duration(rand.IntN(5)) * time.Minute)
				}
				switch rand.IntN(3) {
				case 0:
					lost := rand.IntN(3)
					session := &device{public: key.Public()}
					session.sign = func(digest []byte, o crypto.SignerOpts) ([]byte, error) {
						if int(session.count.Load()) > lost {
							return nil, errAway
						}
						return key.sign(digest, o)
					}
					m.Certificate = &tls.Certificate{Certificate: [][]byte{names[i]}, PrivateKey: session}
				case 1:
					m.Certificate = pairs[i]
					m.Token = fmt.Sprint(i - i%10)
				}
				return execcredential.NewCredential(m, start)
			}))
		}
		sources := []*execcredential.Source{source(), source()}
		account := execcredential.NewAccount(sources[0], sources[1])
		base := server.transport()
		stop := make(chan bool)
		var wg, ticker sync.WaitGroup
		ticker.Go(func() { // so that no pause lasts
			for {
				select {
				case <-stop:
					return
				default:
					clock.Advance(time.Duration(rand.IntN(3000)) * time.Millisecond)
					time.Sleep(time.Millisecond)
				}
			}
		})
		closeAt := time.Duration(rand.IntN(100)) * time.Millisecond
		for range 8 {
			wg.Go(func() {
				var closed int
				for closed < 20 {
					s := sources[rand.IntN(2)]
					ctx, cancel := context.WithCancel(t.Context())
					if rand.IntN(4) == 0 {
						time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, cancel)
					}
					var err error
					switch rand.IntN(8) {
					case 0:
						_, err = s.Get(ctx)
					case 1:
						var c *execcredential.Credential
						if c, err = s.Get(ctx); err == nil {
							_, err = s.Rejected(ctx, c)
						}
					case 2:
						_, err = s.Refresh(ctx)
					case 3:
						s.Status()
						_, err = pool.Source(execcredential.Config{Command: "/" + fmt.Sprint(rand.IntN(5)), APIVersion: execcredential.V1, InteractiveMode: execcredential.Never})
					default:
						var body io.Reader
						switch rand.IntN(3) {
						case 0:
							body = strings.NewReader("body")
						case 1:
							body = struct{ io.Reader }{strings.NewReader("body")}
						}
						request, _ := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, body)
						var rt http.RoundTripper = s.Transport(base)
						if rand.IntN(2) == 0 {
							rt = account.Transport(base)
						}
						var response *http.Response
						if response, err = rt.RoundTrip(request); err == nil {
							_ = response.Body.Close()
						} else if response != nil {
							wrong.Store("response and error")
						}
					}
					cancel()
					if errors.Is(err, execcredential.ErrClosed) {
						closed++
					}
				}
			})
		}
		time.Sleep(closeAt)
		_ = pool.Close()
		if _, err := sources[0].Get(t.Context()); !errors.Is(err, execcredential.ErrClosed) {
			t.Errorf("error %v after Close", err)
		}
		done := make(chan bool)
		go func() { wg.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			panic("something hangs")
		}
		close(stop)
		ticker.Wait()
		if w := wrong.Load(); w != nil {
			t.Fatal(w)
		}
	}
}
