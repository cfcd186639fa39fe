package service_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	externaljwt "k8s.io/externaljwt/apis/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/externalsigner/service"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

const issuer = "https://kubernetes.default.svc"

// patience is for a machine that hangs.
const patience = 5 * time.Minute

// firstRing is made once: RSA keys are slow to make.
var firstRing = sync.OnceValue(func() keys.Ring {
	ring, err := keys.Bootstrap(keys.NewPrivate, time.Now())
	if err != nil {
		panic(err)
	}
	return ring
})

// world is a service with what it depends on. Times are those of the fake clock.
type world struct {
	*service.Service
	clock    *testingclock.FakePassiveClock
	registry *prometheus.Registry
	log      bytes.Buffer

	ring    keys.Ring
	age     time.Duration
	missing bool
	next    time.Time
}

func newWorld(t *testing.T, edit func(*service.Config)) *world {
	t.Helper()
	w := &world{clock: testingclock.NewFakePassiveClock(time.Now()), registry: prometheus.NewRegistry(), ring: firstRing()}
	config := service.Config{
		Issuer: issuer,
		Ring: func() (keys.Ring, time.Time, bool) {
			return w.ring, w.clock.Now().Add(-w.age), !w.missing
		},
		NextChange: func() time.Time { return w.next },
		Clock:      w.clock,
		Log:        slog.New(slog.NewTextHandler(&w.log, nil)),
		Recorder:   service.NewRecorder(w.registry),
	}
	if edit != nil {
		edit(&config)
	}
	var err error
	if w.Service, err = service.New(config); err != nil {
		t.Fatal(err)
	}
	return w
}

// claims are those of a token that kube-apiserver has signed.
func (w *world) claims() map[string]any {
	now := w.clock.Now()
	return map[string]any{
		"iss": issuer, "sub": "system:serviceaccount:default:default", "aud": []string{"a"},
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": "7e57",
	}
}

func encode(claims map[string]any) string {
	data, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func (w *world) sign(t *testing.T, payload string) (*externaljwt.SignJWTResponse, error) {
	t.Helper()
	return w.Sign(t.Context(), &externaljwt.SignJWTRequest{Claims: payload})
}

func TestServiceConforms(t *testing.T) {
	for _, algorithm := range keys.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			w := newWorld(t, func(c *service.Config) {
				c.Algorithm, c.Clock = algorithm, clock.RealClock{}
				c.Ring = func() (keys.Ring, time.Time, bool) { return firstRing(), time.Now(), true }
			})
			externalsignertest.Run(t, externalsignertest.Subject{
				Socket: externalsignertest.Serve(t, w), Claims: func() []byte {
					data := testkit.Need(json.Marshal(w.claims()))(t)
					return data
				},
			})
			for _, want := range []string{
				fmt.Sprintf(`credence_signer_signatures_total{algorithm=%q,outcome="signed"}`, algorithm), "credence_signer_sign_duration_seconds",
			} {
				if got := metrics(t, w); !strings.Contains(got, want) {
					t.Errorf("%s is not counted:\n%s", want, got)
				}
			}
		})
	}
}

func metrics(t *testing.T, w *world) string {
	t.Helper()
	families := testkit.Need(w.registry.Gather())(t)
	var text strings.Builder
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetCounter().GetValue() == 0 && metric.GetHistogram().GetSampleCount() == 0 {
				continue
			}
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			fmt.Fprintf(&text, "%s{%s}\n", family.GetName(), strings.Join(labels, ","))
		}
	}
	return text.String()
}

func TestRefusals(t *testing.T) {
	type edit = func(w *world, claims map[string]any)
	set := func(name string, value any) edit {
		return func(_ *world, c map[string]any) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
	}
	in := func(name string, after time.Duration) edit {
		return func(w *world, c map[string]any) { c[name] = w.clock.Now().Add(after).Unix() }
	}
	for _, test := range []struct {
		name    string
		edit    edit
		code    codes.Code
		outcome service.Outcome
		says    string
	}{
		{"as it must be", func(*world, map[string]any) {}, codes.OK, service.Signed, ""},
		{"another issuer", set("iss", "https://identity.example.com"), codes.PermissionDenied, service.OtherIssuer, "--service-account-issuer"},
		{"a longer issuer", set("iss", issuer+"/"), codes.PermissionDenied, service.OtherIssuer, issuer},
		{"no issuer", set("iss", nil), codes.InvalidArgument, service.MalformedClaims, "iss"},
		{"an issuer that is not a string", set("iss", []string{issuer}), codes.InvalidArgument, service.MalformedClaims, "iss"},
		{"no expiry", set("exp", nil), codes.InvalidArgument, service.MalformedClaims, "exp"},
		{"no time of issue", set("iat", nil), codes.InvalidArgument, service.MalformedClaims, "iat"},
		{"an expiry that is a string", set("exp", "1"), codes.InvalidArgument, service.MalformedClaims, "exp"},
		{"an expiry with a fraction", set("exp", 1.5), codes.InvalidArgument, service.MalformedClaims, "exp"},
		{"an expiry out of range", set("exp", 1e300), codes.InvalidArgument, service.MalformedClaims, "exp"},
		{"the longest lifetime", in("exp", 47*time.Hour+59*time.Minute+59*time.Second), codes.OK, service.Signed, ""},
		{"a longer lifetime", in("exp", 48*time.Hour+time.Second), codes.InvalidArgument, service.WrongTimes, "--service-account-max-token-expiration"},
		{"a lifetime without end", set("exp", int64(1)<<62), codes.InvalidArgument, service.WrongTimes, "48h"},
		{"a past expiry", in("exp", -time.Second), codes.InvalidArgument, service.WrongTimes, "exp"},
		{"issued a little ahead", in("iat", 5*time.Second), codes.OK, service.Signed, ""},
		{"issued in the future", in("iat", time.Minute), codes.InvalidArgument, service.WrongTimes, "clock"},
		{"issued in the past", in("iat", -time.Hour), codes.OK, service.Signed, ""},
		{"a ring that is old", func(w *world, _ map[string]any) { w.age = 61 * time.Second }, codes.Unavailable, service.NoRing, "last read"},
		{"a ring that is not too old", func(w *world, _ map[string]any) { w.age = 60 * time.Second }, codes.OK, service.Signed, ""},
		{"a ring of the future", func(w *world, _ map[string]any) { w.age = -time.Second }, codes.Unavailable, service.NoRing, "last read"},
		{"no ring", func(w *world, _ map[string]any) { w.missing = true }, codes.Unavailable, service.NoRing, "folder of keys"},
		{"no active key", func(w *world, _ map[string]any) { w.ring.Keys = spares(w.ring) }, codes.Unavailable, service.NoKey, "RS256"},
		{"terms that allow less", func(w *world, _ map[string]any) {
			w.ring.Keys = slices.Clone(w.ring.Keys)
			for i := range w.ring.Keys {
				w.ring.Keys[i].Terms.MaxLifetime = 59 * time.Minute
			}
		}, codes.InvalidArgument, service.WrongTimes, "59m"},
		{"a key that fails", func(w *world, _ map[string]any) {
			w.ring.Keys = slices.Clone(w.ring.Keys)
			for i, key := range w.ring.Keys {
				w.ring.Keys[i].Private = externalsignertest.Broken(key.Private)
			}
		}, codes.Internal, service.Failed, "broken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil)
			claims := w.claims()
			test.edit(w, claims)
			w.check(t, encode(claims), test.code, test.outcome, test.says)
		})
	}
	good := newWorld(t, nil).claims()
	large := maps.Clone(good)
	large["padding"] = strings.Repeat("x", 1<<16)
	for name, payload := range map[string]string{
		"more than allowed": encode(large),
		"a line break":      "\n" + encode(good),
		"nothing":           "",
		"no base64url":      "%%%",
		"padding":           base64.URLEncoding.EncodeToString([]byte(`{"iss":"a" }`)) + "=",
		"no JSON":           "Z2FyYmFnZQ",
		"an array":          base64.RawURLEncoding.EncodeToString([]byte(`[]`)),
		"cut off":           base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + issuer + `","iat":1,"exp":2`)),
		"data behind it":    base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + issuer + `","iat":1,"exp":2}{}`)),
		"a claim twice":     base64.RawURLEncoding.EncodeToString([]byte(`{"exp":99999999999,"iss":"` + issuer + `","iat":1,"exp":2}`)),
		"twice below":       base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + issuer + `","iat":1,"exp":2,"kubernetes.io":{"namespace":"a","namespace":"b"}}`)),
		"not UTF-8":         base64.RawURLEncoding.EncodeToString([]byte("{\"iss\":\"\xff\",\"iat\":1,\"exp\":2}")),
	} {
		t.Run(name, func(t *testing.T) {
			newWorld(t, nil).check(t, payload, codes.InvalidArgument, service.MalformedClaims, "claims: ")
		})
	}
}

// check has claims signed, and looks at the answer, the log and the metrics.
func (w *world) check(t *testing.T, payload string, code codes.Code, outcome service.Outcome, says string) {
	t.Helper()
	response, err := w.sign(t, payload)
	if status.Code(err) != code || (err != nil && !strings.Contains(err.Error(), says)) {
		t.Errorf("%v, want %s with %q", err, code, says)
	}
	if (err == nil) != (response.GetSignature() != "") {
		t.Error("a signature is given with an error, or none without")
	}
	want := fmt.Sprintf("credence_signer_signatures_total{algorithm=\"RS256\",outcome=%q}\n", outcome)
	if got := metrics(t, w); !strings.Contains(got, want) || strings.Count(got, "signatures_total") != 1 {
		t.Errorf("metrics:\n%s\nwant:\n%s", got, want)
	}
	if logged := w.log.String(); (err == nil) != (logged == "") || (len(payload) > 8 && strings.Contains(logged, payload)) {
		t.Errorf("log: %s", logged)
	}
}

func spares(ring keys.Ring) []keys.Key {
	return slices.DeleteFunc(slices.Clone(ring.Keys), func(k keys.Key) bool { return k.State != keys.Spare })
}

// The keys that kube-apiserver publishes are those that the ring publishes, with the time of its reading.
func TestFetchKeys(t *testing.T) {
	w := newWorld(t, nil)
	if before := w.Announced(); before != nil {
		t.Errorf("announced before the first request: %v", before)
	}
	w.age = time.Hour
	client := testkit.Need(externalsigner.New(externalsigner.Config{Socket: externalsignertest.Serve(t, w), Timeout: patience}))(t)
	t.Cleanup(func() { _ = client.Close() })
	announced := testkit.Need(client.Keys(t.Context()))(t)
	var got []identity.PublicKey
	for _, key := range announced.Published {
		got = append(got, key.PublicKey)
	}
	if diff := cmp.Diff(w.ring.Published(), got); diff != "" {
		t.Errorf("keys (-ring +announced):\n%s", diff)
	}
	if want := w.clock.Now().Add(-time.Hour); !announced.DataTimestamp.Equal(want.Round(0)) || len(announced.Excluded) > 0 {
		t.Errorf("read at %s, want %s; excluded: %d", announced.DataTimestamp, want, len(announced.Excluded))
	}
	var ids []identity.KeyID
	for _, key := range w.ring.Published() {
		ids = append(ids, key.ID)
	}
	if diff := cmp.Diff(ids, w.Announced()); diff != "" {
		t.Errorf("announced (-ring +fetched):\n%s", diff)
	}
	w.missing = true
	if _, err := w.FetchKeys(t.Context(), nil); status.Code(err) != codes.Unavailable {
		t.Errorf("without a ring: %v", err)
	}
}

func TestRefreshHintEndsWithTheNextChange(t *testing.T) {
	w := newWorld(t, func(c *service.Config) { c.RefreshHint = 5 * time.Minute })
	for next, want := range map[time.Duration]int64{
		-time.Hour: 1, 0: 1, time.Second: 1, 2500 * time.Millisecond: 2, time.Minute: 60, time.Hour: 300,
	} {
		w.next = w.clock.Now().Add(next)
		response, err := w.FetchKeys(t.Context(), nil)
		if err != nil || response.GetRefreshHintSeconds() != want {
			t.Errorf("next change in %s: %d s, %v, want %d s", next, response.GetRefreshHintSeconds(), err, want)
		}
	}
	w.next = time.Time{}
	if response, err := w.FetchKeys(t.Context(), nil); err != nil || response.GetRefreshHintSeconds() != 300 {
		t.Errorf("no change is known: %v, %v", response, err)
	}
}

func TestMetadata(t *testing.T) {
	for _, c := range []struct {
		settings, terms, want time.Duration
	}{{0, 0, 48 * time.Hour}, {time.Hour, 48 * time.Hour, time.Hour}, {72 * time.Hour, 48 * time.Hour, 48 * time.Hour}} {
		w := newWorld(t, func(config *service.Config) { config.MaxLifetime = c.settings })
		w.ring.Keys = slices.Clone(w.ring.Keys)
		for i := range w.ring.Keys {
			w.ring.Keys[i].Terms.MaxLifetime = c.terms
		}
		response, err := w.Metadata(t.Context(), nil)
		if got := time.Duration(response.GetMaxTokenExpirationSeconds()) * time.Second; err != nil || got != c.want {
			t.Errorf("setting %s, terms %s: %s, %v, want %s", c.settings, c.terms, got, err, c.want)
		}
	}
}

func TestReady(t *testing.T) {
	w := newWorld(t, nil)
	testkit.Expect(t, w.Ready())
	w.age = time.Hour
	if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "last read") {
		t.Errorf("with an old ring: %v", err)
	}
}

// Keys that a damaged store must not sign with are still announced.
func TestSigningIsNotAnnouncing(t *testing.T) {
	w := newWorld(t, func(c *service.Config) {
		c.Signing = func() (keys.Ring, time.Time, bool) { return keys.Ring{}, time.Time{}, false }
	})
	testkit.Expect(t, testkit.Err(w.FetchKeys(t.Context(), nil)))
	if _, err := w.sign(t, encode(w.claims())); status.Code(err) != codes.Unavailable {
		t.Errorf("signed: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	good := service.Config{
		Issuer: issuer, Clock: clock.RealClock{}, Ring: func() (keys.Ring, time.Time, bool) { return keys.Ring{}, time.Time{}, false },
	}
	testkit.Must(t, testkit.Err(service.New(good)))
	for name, spoil := range map[string]func(*service.Config){
		"no issuer":            func(c *service.Config) { c.Issuer = "" },
		"no ring":              func(c *service.Config) { c.Ring = nil },
		"no clock":             func(c *service.Config) { c.Clock = nil },
		"an unknown algorithm": func(c *service.Config) { c.Algorithm = "ES384" },
		"a short lifetime":     func(c *service.Config) { c.MaxLifetime = time.Minute },
		"a hint with parts":    func(c *service.Config) { c.RefreshHint = 1500 * time.Millisecond },
		"a negative hint":      func(c *service.Config) { c.RefreshHint = -time.Second },
	} {
		bad := good
		spoil(&bad)
		if _, err := service.New(bad); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

func TestMetricsAreLinted(t *testing.T) {
	problems, err := testutil.GatherAndLint(newWorld(t, nil).registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// Whatever claims hold, a signed payload has the issuer, and ends in time, for a parser that takes the last of two claims.
func FuzzClaims(f *testing.F) {
	w := newWorldForFuzz(f)
	claims := w.claims()
	for _, seed := range []map[string]any{claims, {}, {"iss": 1}} {
		data, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"iss":"` + issuer + `","iss":"x","iat":1,"exp":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := w.Sign(context.Background(), &externaljwt.SignJWTRequest{Claims: base64.RawURLEncoding.EncodeToString(data)}); err != nil {
			if !slices.Contains([]codes.Code{codes.InvalidArgument, codes.PermissionDenied}, status.Code(err)) {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		read := map[string]any{}
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatalf("%q was signed: %v", data, err)
		}
		expiry, _ := read["exp"].(float64)
		if longest := w.clock.Now().Add(48 * time.Hour).Unix(); read["iss"] != issuer || int64(expiry) > longest {
			t.Errorf("%q was signed: %v", data, slices.Sorted(maps.Keys(read)))
		}
	})
}

func newWorldForFuzz(f *testing.F) *world {
	f.Helper()
	w := &world{clock: testingclock.NewFakePassiveClock(time.Now()), ring: firstRing()}
	var err error
	w.Service, err = service.New(service.Config{
		Issuer: issuer, Algorithm: identity.ES256, Clock: w.clock,
		Ring: func() (keys.Ring, time.Time, bool) { return w.ring, w.clock.Now(), true },
	})
	if err != nil {
		f.Fatal(err)
	}
	return w
}
