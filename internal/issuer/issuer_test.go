package issuer

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

// now has a fraction of a second and a zone, so that tests see both go away.
func now() time.Time {
	return time.Date(2026, 3, 1, 13, 0, 0, 987654321, time.FixedZone("CET", 3600))
}

// testRing is generated once: RSA keys are slow to make.
var testRing = sync.OnceValue(func() keys.Ring {
	ring, err := keys.Bootstrap(keys.NewPrivate, now())
	if err != nil {
		panic(err)
	}
	return ring
})

// readNow gives a ring as it was read just now.
func readNow(ring func() keys.Ring) func() (keys.Ring, time.Time) {
	return func() (keys.Ring, time.Time) { return ring(), now() }
}

func testConfig() Config {
	return Config{
		Issuer:   "https://identity.example.com",
		GardenID: "garden-1",
		Ring:     readNow(testRing),
		Clock:    now,
		Random:   rand.Reader,
	}
}

// withRing returns a configuration whose ring a test changes.
func withRing(ring *keys.Ring) Config {
	config := testConfig()
	config.Ring = readNow(func() keys.Ring { return *ring })
	return config
}

func newIssuer(t testing.TB, config Config) *Issuer {
	t.Helper()
	issuer := testkit.Need(New(config))(t)
	return issuer
}

func testRequest() Request {
	return Request{
		Identity:        Identity{Namespace: "garden-local", Name: "banana-testing", UID: "12b580fe-1f74-4195-852b-e1a74b03496a"},
		Audiences:       []string{"team-foo"},
		TargetAlgorithm: identity.ES256,
	}
}

func withServiceAccount(r Request) Request {
	r.Context = &Context{ServiceAccount: &ServiceAccount{Namespace: "shop", Name: "cart", UID: "54d09554-6a68-4f46-a23a-e3592385d820"}}
	return r
}

// withPod has a pod of the service account as the context, on a node whose uid is not known.
func withPod(r Request) Request {
	r = withServiceAccount(r)
	r.Context.Pod = &Pod{Name: "cart-0", UID: "7a0b9f3e-1c52-4c0e-9f6d-0d6a3a4f8e11", Node: Node{Name: "worker-1"}}
	return r
}

// parts returns the three decoded parts of a token.
func parts(t testing.TB, token identity.Token) (header, payload, signature []byte) {
	t.Helper()
	encoded := strings.Split(token.Reveal(), ".")
	if len(encoded) != 3 {
		t.Fatalf("the token has %d parts, want 3", len(encoded))
	}
	var decoded [3][]byte
	for i, part := range encoded {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			t.Fatalf("part %d: %v", i, err)
		}
	}
	return decoded[0], decoded[1], decoded[2]
}

func mustIssue(t testing.TB, issuer *Issuer, request Request) (*Prepared, identity.Token) {
	t.Helper()
	prepared := testkit.Need(issuer.Prepare(request))(t)
	token := testkit.Need(issuer.Sign(t.Context(), prepared))(t)
	return prepared, token
}

func TestClaims(t *testing.T) {
	const (
		garden   = `,"garden":{"id":"garden-1"}`
		cluster  = `{"name":"east","uid":"96e2a2d7-0a2c-4a43-8c3d-04c1bb9b1a57"}`
		account  = `"namespace":"shop","serviceaccount":{"name":"cart","uid":"54d09554-6a68-4f46-a23a-e3592385d820"}`
		pod      = `,"pod":{"name":"cart-0","uid":"7a0b9f3e-1c52-4c0e-9f6d-0d6a3a4f8e11"},"node":{"name":"worker-1"}`
		audience = `"aud":["team-foo"]`
		hour     = `"exp":1772370000`
	)
	inCluster := withServiceAccount(testRequest())
	inCluster.Cluster = &Cluster{Name: "east", UID: "96e2a2d7-0a2c-4a43-8c3d-04c1bb9b1a57"}
	short := withServiceAccount(testRequest())
	short.Audiences, short.Lifetime = []string{"b", "a"}, 10*time.Minute+time.Millisecond
	for name, c := range map[string]struct {
		gardenID string
		request  Request
		// audience and expiry are claims. gardener is what follows the identity in the claim gardener.cloud, kubernetes is the claim of its name.
		audience, expiry, gardener, kubernetes string
	}{
		"plain":                 {"garden-1", testRequest(), audience, hour, garden, ""},
		"no garden":             {"", testRequest(), audience, hour, "", ""},
		"of a workload cluster": {"garden-1", inCluster, audience, hour, `,"seed":` + cluster + garden, account + `,"cluster":` + cluster},
		"of a pod":              {"", withPod(testRequest()), audience, hour, "", account + pod},
		"with a service account, two audiences and a lifetime": {"garden-1", short, `"aud":["b","a"]`, `"exp":1772367000`, garden, account},
	} {
		t.Run(name, func(t *testing.T) {
			want := `{"iss":"https://identity.example.com",` +
				`"sub":"gardener.cloud:workloadidentity:garden-local:banana-testing:12b580fe-1f74-4195-852b-e1a74b03496a",` +
				c.audience + `,"iat":1772366400,"nbf":1772366400,` + c.expiry + `,"jti":"00010203-0405-4607-8809-0a0b0c0d0e0f",` +
				`"gardener.cloud":{"workloadIdentity":{"name":"banana-testing","namespace":"garden-local","uid":"12b580fe-1f74-4195-852b-e1a74b03496a"}` +
				c.gardener + `}`
			if c.kubernetes != "" {
				want += `,"kubernetes.io":{` + c.kubernetes + `}`
			}
			config := testConfig()
			config.GardenID = c.gardenID
			config.Random = bytes.NewReader([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
			_, token := mustIssue(t, newIssuer(t, config), c.request)
			_, payload, _ := parts(t, token)
			if diff := cmp.Diff(want+`}`, string(payload)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreparedReportsWhatIsSigned(t *testing.T) {
	config := testConfig()
	config.Lifetimes = identity.Lifetimes{Max: 2 * time.Hour}
	request := testRequest()
	request.Lifetime = 3 * time.Hour
	prepared, token := mustIssue(t, newIssuer(t, config), request)
	_, payload, _ := parts(t, token)
	var signed claims
	testkit.Must(t, json.Unmarshal(payload, &signed))
	if prepared.JTI() != signed.ID || prepared.Subject() != signed.Subject || !slices.Equal(prepared.Audiences(), signed.Audiences) ||
		prepared.IssuedAt().Unix() != signed.IssuedAt || prepared.Expiry().Unix() != signed.Expiry {
		t.Errorf("reported %s %s %s %s %s, signed %+v", prepared.JTI(), prepared.Subject(), prepared.Audiences(), prepared.IssuedAt(), prepared.Expiry(), signed)
	}
	if want := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC); prepared.Expiry() != want || !prepared.Shortened() {
		t.Errorf("expires at %s, shortened %v, want %s and shortened", prepared.Expiry(), prepared.Shortened(), want)
	}
	if prepared.Algorithm() != identity.ES256 {
		t.Errorf("algorithm %s, want ES256", prepared.Algorithm())
	}
	// Later changes of the caller's slices have no effect.
	request.Audiences[0], prepared.Audiences()[0] = "other", "other"
	if got := prepared.Audiences(); got[0] != "team-foo" {
		t.Errorf("the audience became %q", got)
	}
}

func TestTokensVerify(t *testing.T) {
	issuer := newIssuer(t, testConfig())
	for _, algorithm := range []identity.Algorithm{identity.RS256, identity.ES256} {
		request := testRequest()
		request.TargetAlgorithm = algorithm
		key, _ := testRing().Signer(algorithm)
		// One in 128 ECDSA signatures has a number with a leading zero byte.
		rounds := map[identity.Algorithm]int{identity.RS256: 4, identity.ES256: 600}[algorithm]
		for range rounds {
			prepared, token := mustIssue(t, issuer, request)
			header, payload, _ := parts(t, token)
			if want := `{"alg":"` + string(algorithm) + `","kid":"` + string(key.ID) + `","typ":"JWT"}`; string(header) != want {
				t.Fatalf("header %s, want %s", header, want)
			}
			if prepared.KeyID() != key.ID {
				t.Fatalf("reported key %q, want %q", prepared.KeyID(), key.ID)
			}
			parsed := testkit.Need(jose.ParseSignedCompact(token.Reveal(), []jose.SignatureAlgorithm{jose.SignatureAlgorithm(algorithm)}))(t)
			verified := testkit.Need(parsed.Verify(key.Private.Public()))(t)
			if !bytes.Equal(verified, payload) {
				t.Fatalf("verified %s, want %s", verified, payload)
			}
		}
	}
}

func TestTokenIDs(t *testing.T) {
	issuer := newIssuer(t, testConfig())
	seen := map[string]bool{}
	for range 200 {
		prepared := testkit.Need(issuer.Prepare(testRequest()))(t)
		id := prepared.JTI()
		if len(id) != 36 || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) || seen[id] {
			t.Fatalf("token ID %q is not a new UUID of version 4", id)
		}
		seen[id] = true
	}
	config := testConfig()
	config.Random = io.LimitReader(rand.Reader, 15)
	if _, err := newIssuer(t, config).Prepare(testRequest()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("with too little randomness: %v, want an error", err)
	}
}

func TestNewNamesTheSetting(t *testing.T) {
	cases := []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Issuer = "" }, "issuer is empty"},
		{func(c *Config) { c.Issuer = "https://identity.example.com/" }, "trailing slash"},
		{func(c *Config) { c.Issuer = "http://identity.example.com" }, "https://"},
		{func(c *Config) { c.GardenID = "a b" }, "garden ID"},
		{func(c *Config) { c.Lifetimes.Min = time.Minute }, "minimum token lifetime"},
		{func(c *Config) { c.Ring = nil }, "ring"},
		{func(c *Config) { c.Clock = nil }, "clock"},
		{func(c *Config) { c.Random = nil }, "randomness"},
	}
	for _, c := range cases {
		config := testConfig()
		c.change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestPrepareSaysWhatIsMissing(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Request)
		want   string
	}{
		{"no namespace", func(r *Request) { r.Identity.Namespace = "" }, "namespace"},
		{"no name", func(r *Request) { r.Identity.Name = "" }, "name"},
		{"no uid", func(r *Request) { r.Identity.UID = "" }, "uid"},
		{"subject too long", func(r *Request) { r.Identity.Name = strings.Repeat("n", 200) }, "at most 255"},
		{"subject not ASCII", func(r *Request) { r.Identity.Name = "nåme" }, "ASCII"},
		{"colon", func(r *Request) { r.Identity.Name = "a:b" }, "colon"},
		{"no audience", func(r *Request) { r.Audiences = nil }, "audience"},
		{"empty audience", func(r *Request) { r.Audiences = []string{"a", ""} }, "audiences[1] is empty"},
		{"audience that is not text", func(r *Request) { r.Audiences = []string{"a\xff"} }, "audiences[0] is not valid UTF-8"},
		{"no algorithm", func(r *Request) { r.TargetAlgorithm = "" }, `algorithm ""`},
		{"other algorithm", func(r *Request) { r.TargetAlgorithm = "none" }, `algorithm "none"`},
		{"context of nothing", func(r *Request) { r.Context = &Context{} }, "names no object"},
		{"context without namespace", func(r *Request) { r.Context.ServiceAccount.Namespace = "" }, "namespace"},
		{"context without name", func(r *Request) { r.Context.ServiceAccount.Name = "" }, "name"},
		{"context without uid", func(r *Request) { r.Context.ServiceAccount.UID = "" }, "uid"},
		{"context that is not text", func(r *Request) { r.Context.ServiceAccount.UID = "a\xff" }, "uid"},
		{"pod without an account", func(r *Request) { r.Context.ServiceAccount = nil }, "names no object"},
		{"pod without name", func(r *Request) { r.Context.Pod.Name = "" }, "name"},
		{"pod without uid", func(r *Request) { r.Context.Pod.UID = "" }, "uid"},
		{"pod without node", func(r *Request) { r.Context.Pod.Node.Name = "" }, "node"},
		{"node that is not text", func(r *Request) { r.Context.Pod.Node.UID = "a b" }, "uid"},
		{"pod of another object", func(r *Request) { r.Context = &Context{Pod: r.Context.Pod, Objects: []Object{shoot}} }, "and another object"},
	}
	issuer := newIssuer(t, testConfig())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := withPod(testRequest())
			c.change(&request)
			prepared, err := issuer.Prepare(request)
			if prepared != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if errors.Is(err, ErrNoSigningKey) {
				t.Errorf("%v is not for want of a key", err)
			}
		})
	}
}

func TestTooShortALifetimeIsItsOwnError(t *testing.T) {
	for _, requested := range []time.Duration{-time.Hour, 1, 10*time.Minute - 1} {
		request := testRequest()
		request.Lifetime = requested
		_, err := newIssuer(t, testConfig()).Prepare(request)
		var short *LifetimeError
		if !errors.As(err, &short) {
			t.Fatalf("%s: error %v, want a *LifetimeError", requested, err)
		}
		if diff := cmp.Diff(LifetimeError{Requested: requested, Min: 10 * time.Minute}, *short); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
	}
}

// onlyRing is a ring that is never checked as a whole, as a broken store could give one.
func onlyRing(key keys.Key) keys.Ring { return keys.Ring{Keys: []keys.Key{key}} }

func TestNoKeyMaySign(t *testing.T) {
	active := func() keys.Key { key, _ := testRing().Signer(identity.ES256); return key }
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	cases := map[string]func(*keys.Key){
		"only a spare":          func(k *keys.Key) { k.State = keys.Spare },
		"no private key":        func(k *keys.Key) { k.Private = nil },
		"foreign kid":           func(k *keys.Key) { k.ID = testRing().Keys[3].ID },
		"key of another kind":   func(k *keys.Key) { k.Private = testRing().Keys[0].Private },
		"key that is not ES256": func(k *keys.Key) { k.Private = edwards },
		"RSA key under ES256":   func(k *keys.Key) { *k = testRing().Keys[0]; k.Algorithm = identity.ES256 },
	}
	for name, change := range cases {
		key := active()
		change(&key)
		ring := onlyRing(key)
		if _, err := newIssuer(t, withRing(&ring)).Prepare(testRequest()); !errors.Is(err, ErrNoSigningKey) {
			t.Errorf("%s: %v, want ErrNoSigningKey", name, err)
		}
	}
}

// That a key was good under its own algorithm before does not let it sign under another.
func TestAKnownKeyDoesNotSignUnderAnotherAlgorithm(t *testing.T) {
	current := testRing()
	issuer := newIssuer(t, withRing(&current))
	request := testRequest()
	request.TargetAlgorithm = identity.RS256
	mustIssue(t, issuer, request)

	mislabelled, _ := testRing().Signer(identity.RS256)
	mislabelled.Algorithm = identity.ES256
	current = onlyRing(mislabelled)
	if _, err := issuer.Prepare(testRequest()); !errors.Is(err, ErrNoSigningKey) {
		t.Errorf("%v, want ErrNoSigningKey", err)
	}
}

// The ring may lose its key between Prepare and Sign. The lost key does not sign, the claims are not used up, and the key
// that signs in the end is the one that is reported.
func TestTheKeyIsThatOfTheRingAtSign(t *testing.T) {
	current := testRing()
	issuer := newIssuer(t, withRing(&current))
	prepared := testkit.Need(issuer.Prepare(testRequest()))(t)

	current = keys.Ring{}
	if _, err := issuer.Sign(t.Context(), prepared); !errors.Is(err, ErrNoSigningKey) {
		t.Fatalf("sign with an empty ring: %v, want ErrNoSigningKey", err)
	}
	if got := prepared.KeyID(); got != "" {
		t.Errorf("key %s is reported, but nothing was signed", got)
	}

	promoted := slices.Clone(testRing().Keys)
	promoted[2].State, promoted[3].State = keys.Spare, keys.Active
	current = keys.Ring{Keys: promoted}
	token := testkit.Need(issuer.Sign(t.Context(), prepared))(t)
	header, _, _ := parts(t, token)
	if want := promoted[3].ID; prepared.KeyID() != want || !strings.Contains(string(header), string(want)) {
		t.Errorf("reported key %s, header %s, want %s", prepared.KeyID(), header, want)
	}
	parsed := testkit.Need(jose.ParseSignedCompact(token.Reveal(), []jose.SignatureAlgorithm{jose.ES256}))(t)
	testkit.Expect(t, testkit.Err(parsed.Verify(promoted[3].Private.Public())), "verify with the promoted key")
}

// An Issuer remembers keys of the current ring only, however many rings it has seen.
func TestForgetsKeysThatLeftTheRing(t *testing.T) {
	current := testRing()
	issuer := newIssuer(t, withRing(&current))
	for range 5 {
		mustIssue(t, issuer, testRequest())
		private, err := keys.NewPrivate(identity.ES256)
		testkit.Must(t, err)
		next := slices.Clone(current.Keys)
		next[2].Private = private
		if next[2].ID, err = identity.KeyIDOf(private.Public()); err != nil {
			t.Fatal(err)
		}
		current = keys.Ring{Keys: next}
	}
	rsa := testRequest()
	rsa.TargetAlgorithm = identity.RS256
	mustIssue(t, issuer, rsa)
	mustIssue(t, issuer, testRequest())
	if n := len(*issuer.signers.Load()); n != 2 {
		t.Errorf("%d keys are remembered, want the 2 active ones", n)
	}
}

// badSigner is a key whose signatures are not what its public key promises.
type badSigner struct {
	public crypto.PublicKey
	answer func() ([]byte, error)
}

func (s badSigner) Public() crypto.PublicKey { return s.public }

func (s badSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return s.answer() }

func TestAKeyThatMisbehavesGivesNoToken(t *testing.T) {
	broken := errors.New("device unplugged")
	answers := map[string]func() ([]byte, error){
		"an error":           func() ([]byte, error) { return nil, broken },
		"nothing":            func() ([]byte, error) { return nil, nil },
		"garbage":            func() ([]byte, error) { return []byte("garbage"), nil },
		"raw instead of DER": func() ([]byte, error) { return make([]byte, 64), nil },
		"a long signature":   func() ([]byte, error) { return make([]byte, 257), nil },
	}
	for i, algorithm := range map[int]identity.Algorithm{0: identity.RS256, 2: identity.ES256} {
		for name, answer := range answers {
			key := testRing().Keys[i]
			key.Private = badSigner{key.Private.Public(), answer}
			ring := onlyRing(key)
			issuer := newIssuer(t, withRing(&ring))
			request := testRequest()
			request.TargetAlgorithm = algorithm
			prepared, err := issuer.Prepare(request)
			testkit.Must(t, err)
			token, err := issuer.Sign(t.Context(), prepared)
			if err == nil || !token.IsZero() || !strings.Contains(err.Error(), string(key.ID)) {
				t.Errorf("%s that gives %s: token %v, error %v, want an error with the kid", algorithm, name, !token.IsZero(), err)
			}
			if name == "an error" && !errors.Is(err, broken) {
				t.Errorf("%s: %v hides the cause", algorithm, err)
			}
			if prepared.KeyID() != "" {
				t.Errorf("%s that gives %s is reported as the key that signed", algorithm, name)
			}
		}
	}
}

func TestES256SignaturesOfExternalSigners(t *testing.T) {
	key, _ := testRing().Signer(identity.ES256)
	if _, ok := key.Private.(*ecdsa.PrivateKey); !ok {
		t.Fatalf("the test needs an ECDSA key, not %T", key.Private)
	}
	scalar := func(size int, first byte) []byte {
		value := bytes.Repeat([]byte{0x11}, size)
		value[0] = first
		return value
	}
	der := func(r, s []byte) []byte {
		body := slices.Concat([]byte{2, byte(len(r))}, r, []byte{2, byte(len(s))}, s)
		return slices.Concat([]byte{0x30, byte(len(body))}, body)
	}
	full := scalar(32, 0x11)
	accepted := map[string]struct{ der, want []byte }{
		"full length":   {der(full, full), slices.Concat(full, full)},
		"high bit":      {der(append([]byte{0}, scalar(32, 0x80)...), full), slices.Concat(scalar(32, 0x80), full)},
		"short numbers": {der([]byte{1}, scalar(31, 0x7f)), slices.Concat(make([]byte, 31), []byte{1, 0}, scalar(31, 0x7f))},
	}
	for name, c := range accepted {
		if got, err := RawSignature(c.der); err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, %v, want %x", name, got, err, c.want)
		}
	}
	refused := map[string][]byte{
		"empty":               nil,
		"no sequence":         slices.Concat([]byte{0x31}, der(full, full)[1:]),
		"length too short":    der(full, full)[:69],
		"trailing byte":       append(der(full, full), 0),
		"third number":        slices.Concat([]byte{0x30, 71}, der(full, full)[2:], []byte{2, 1, 1}),
		"one number":          slices.Concat([]byte{0x30, 34, 2, 32}, full),
		"negative":            der(scalar(32, 0x80), full),
		"zero":                der([]byte{0}, full),
		"empty number":        der(nil, full),
		"padded without need": der(append([]byte{0}, full...), full),
		"33 bytes":            der(scalar(33, 0x11), full),
		"number runs over":    {0x30, 4, 2, 9, 1, 1},
		"not an integer":      {0x30, 6, 3, 1, 1, 2, 1, 1},
	}
	for name, data := range refused {
		if got, err := RawSignature(data); err == nil {
			t.Errorf("%s: %x is accepted as %x", name, data, got)
		}
	}
}

// The target system's longest lifetime shortens a token, never lengthens it, and wins over the issuer's own minimum.
func TestLongestAccepted(t *testing.T) {
	for _, test := range []struct {
		requested, accepted, want time.Duration
		shortened                 bool
	}{
		{2 * time.Hour, 0, 2 * time.Hour, false},
		{2 * time.Hour, 2 * time.Hour, 2 * time.Hour, false},
		{2 * time.Hour, 2*time.Hour - time.Second, 2*time.Hour - time.Second, true},
		{2 * time.Hour, 2*time.Hour - time.Millisecond, 2*time.Hour - time.Second, true},
		{2 * time.Hour, 3 * time.Hour, 2 * time.Hour, false},
		{100 * time.Hour, 25 * time.Hour, 25 * time.Hour, true},
		{0, 30 * time.Minute, 30 * time.Minute, true},
		{0, 5 * time.Minute, 5 * time.Minute, true},
	} {
		request := testRequest()
		request.Lifetime, request.LongestAccepted = test.requested, test.accepted
		prepared, _ := mustIssue(t, newIssuer(t, testConfig()), request)
		if prepared.Lifetime() != test.want || prepared.Shortened() != test.shortened || prepared.Expiry() != prepared.IssuedAt().Add(test.want) {
			t.Errorf("%s requested, %s accepted: %s (shortened: %v), want %s (%v)", test.requested, test.accepted, prepared.Lifetime(), prepared.Shortened(), test.want, test.shortened)
		}
	}
}

// The ring's terms bound its keys, whatever the settings of this process, and a ring that is too old bounds nothing any more.
func TestTermsOfTheRing(t *testing.T) {
	clock, readAt := now(), now()
	ring := keys.Ring{Keys: slices.Clone(testRing().Keys)}
	setTerms := func(terms keys.Terms) {
		changed := slices.Clone(ring.Keys)
		for i := range changed {
			changed[i].Terms = terms
		}
		ring = keys.Ring{Keys: changed}
	}
	setTerms(keys.Terms{MaxLifetime: 15 * time.Minute, Staleness: 20 * time.Second})
	config := testConfig()
	config.Clock = func() time.Time { return clock }
	config.Ring = func() (keys.Ring, time.Time) { return ring, readAt }
	issuer := newIssuer(t, config)

	prepared, _ := mustIssue(t, issuer, testRequest())
	if !prepared.Shortened() || prepared.Lifetime() != 15*time.Minute || prepared.Expiry() != prepared.IssuedAt().Add(15*time.Minute) {
		t.Errorf("the token lives %s (shortened: %v), the key allows 15m", prepared.Lifetime(), prepared.Shortened())
	}

	waiting := testkit.Need(issuer.Prepare(testRequest()))(t)
	setTerms(keys.Terms{MaxLifetime: 10 * time.Minute, Staleness: 20 * time.Second})
	if _, err := issuer.Sign(t.Context(), waiting); !errors.Is(err, ErrNoSigningKey) {
		t.Errorf("15 minutes were signed under terms of 10: %v", err)
	}
	setTerms(keys.Terms{MaxLifetime: 15 * time.Minute, Staleness: 20 * time.Second})
	clock = readAt.Add(20*time.Second + time.Nanosecond)
	if _, err := issuer.Sign(t.Context(), waiting); !errors.Is(err, ErrNoSigningKey) {
		t.Errorf("signed with a ring that was read more than 20 seconds ago: %v", err)
	}
	if _, err := issuer.Prepare(testRequest()); !errors.Is(err, ErrNoSigningKey) {
		t.Errorf("prepared with a ring that was read more than 20 seconds ago: %v", err)
	}
	clock = readAt.Add(20 * time.Second)
	testkit.Expect(t, testkit.Err(issuer.Sign(t.Context(), waiting)), "a refusal used up the claims")

	// A ring that was read while the token was made is not from the future.
	config.Ring = func() (keys.Ring, time.Time) {
		clock = clock.Add(time.Millisecond)
		return ring, clock
	}
	mustIssue(t, newIssuer(t, config), testRequest())
}
