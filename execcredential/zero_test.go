package execcredential_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func isConfigError(err error) bool {
	return errors.As(err, new(*execcredential.ConfigError))
}

// A zero value that no constructor has made is an error where it is used, and no panic.
func TestZeroValues(t *testing.T) {
	pool, clock := newPool(t, execcredential.Options{})
	request := func() *http.Request {
		return need(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:1", nil))(t)
	}
	sources := map[string]*execcredential.Source{
		"nil source": nil, "zero source": {}, "nil provider": pool.SourceOf(nil), "nil function": pool.SourceOf(execcredential.ProviderFunc(nil)),
		"provider of a zero pool": new(execcredential.Pool).SourceOf(nil), "provider of a nil pool": (*execcredential.Pool)(nil).SourceOf(nil),
	}
	accounts := map[string]*execcredential.Account{"nil account": nil, "zero account": {}, "in order nil": execcredential.NewAccount(nil), "in order nil, nil": execcredential.NewAccount(nil, nil)}
	for name, s := range sources {
		accounts["in order "+name] = execcredential.NewAccount(s)
		for what, f := range map[string]func() error{
			"Get":      func() error { return errOf(s.Get(t.Context())) },
			"Refresh":  func() error { return errOf(s.Refresh(t.Context())) },
			"Rejected": func() error { return errOf(s.Rejected(t.Context(), nil)) },
		} {
			resting := what == "Rejected" && s != nil && s.Status().Runs > 0 // what failed a moment ago is not run for that
			if err := f(); !isConfigError(err) && !resting {
				t.Errorf("%s of %s: %v", what, name, err)
			}
		}
		if err := s.Status().Err; !isConfigError(err) {
			t.Errorf("status of %s: %v", name, err)
		}
		_ = fmt.Sprintf("%v %+v %d", s, s, s)
	}
	healthy := pool.SourceOf(&script{now: clock.Now, next: func(int) (execcredential.Material, error) { return execcredential.Material{Token: "a"}, nil }})
	accounts["in order, with nil behind"] = execcredential.NewAccount(healthy, nil)
	for name, a := range accounts {
		for what, f := range map[string]func() error{
			"Get":         func() error { return errOf(a.Get(t.Context())) },
			"Transport":   func() error { return errOf(a.Transport(nil).RoundTrip(request())) },
			"Wrap":        func() error { return errOf(a.Wrap(nil).RoundTrip(request())) },
			"certificate": func() error { return errOf(a.GetClientCertificate(&tls.CertificateRequestInfo{})) },
			"TLS": func() error {
				return errOf(a.Transport(nil).TLSClientConfig().GetClientCertificate(&tls.CertificateRequestInfo{}))
			},
			"tokens": func() error { return errOf(a.TokenSource(t.Context()).Token()) },
		} {
			if err := f(); !isConfigError(err) {
				t.Errorf("%s of %s: %v", what, name, err)
			}
		}
	}
	for name, transport := range map[string]*execcredential.Transport{"nil": nil, "zero": {}} {
		transport.CloseIdleConnections()
		if _, err := transport.RoundTrip(request()); !isConfigError(err) {
			t.Errorf("%s transport: %v", name, err)
		}
		if _, err := transport.TLSClientConfig().GetClientCertificate(nil); !isConfigError(err) {
			t.Errorf("TLS of a %s transport: %v", name, err)
		}
	}
	for name, p := range map[string]*execcredential.Pool{"nil": nil, "zero": {}} {
		if _, err := p.Source(execcredential.Config{}); !isConfigError(err) || p.Len() != 0 || p.Close() != nil {
			t.Errorf("%s pool: %v", name, err)
		}
	}
	for name, c := range map[string]*execcredential.Credential{"nil": nil, "zero": {}} {
		if c.Token() != "" || c.Certificate() != nil || !c.Expires().IsZero() || c.String() == "" || c.Equal(healthyCredential(t, healthy)) {
			t.Errorf("%s credential %v", name, c)
		}
		if _, err := pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) { return c, nil })).Get(t.Context()); !errors.Is(err, execcredential.NoCredential) {
			t.Errorf("%s credential of a provider: %v", name, err)
		}
	}
	server := serve(t, false, all)
	for name, key := range map[string]any{"nil RSA": (*rsa.PrivateKey)(nil), "zero RSA": &rsa.PrivateKey{}, "zero ECDSA": &ecdsa.PrivateKey{}, "nil ECDSA": (*ecdsa.PrivateKey)(nil)} {
		pair := *server.pair(t, "jane")
		pair.PrivateKey = key
		if _, err := execcredential.NewCredential(execcredential.Material{Certificate: &pair}, start); err == nil {
			t.Errorf("%s key is taken", name)
		}
	}
	for _, err := range []error{
		&execcredential.KubeconfigError{}, &execcredential.BackoffError{}, &execcredential.OutputError{}, &execcredential.SignError{}, &execcredential.NotFoundError{},
		&execcredential.StartError{}, &execcredential.PolicyError{}, &execcredential.ExitError{}, &execcredential.TimeoutError{}, &execcredential.PlainHTTPError{},
	} {
		_ = err.Error()
	}
	var zero exectest.Clock
	done := make(chan bool)
	zero.AfterFunc(time.Second, func() { close(done) })
	zero.WaitForTimers(1)
	zero.Advance(time.Second)
	<-done
}

func healthyCredential(t *testing.T, s *execcredential.Source) *execcredential.Credential {
	t.Helper()
	return need(s.Get(t.Context()))(t)
}

// An argument that is nil or zero is an error of a healthy source, too.
func TestZeroArguments(t *testing.T) {
	pool, _ := newPool(t, execcredential.Options{})
	source := func() *execcredential.Source {
		return pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) { return nil, errors.New("not run") }))
	}
	var none context.Context
	var request *http.Request
	for what, f := range map[string]func() error{
		"Get":            func() error { return errOf(source().Get(none)) },
		"Get in order":   func() error { return errOf(execcredential.NewAccount(source(), source()).Get(none)) },
		"Refresh":        func() error { return errOf(source().Refresh(none)) },
		"Rejected":       func() error { return errOf(source().Rejected(none, nil)) },
		"token":          func() error { return errOf(source().TokenSource(none).Token()) },
		"certificate":    func() error { return errOf(source().GetClientCertificate(nil)) },
		"no handshake":   func() error { return errOf(source().GetClientCertificate(&tls.CertificateRequestInfo{})) },
		"TLS":            func() error { return errOf(source().Transport(nil).TLSClientConfig().GetClientCertificate(nil)) },
		"nil request":    func() error { return errOf(source().Transport(nil).RoundTrip(request)) },
		"no URL":         func() error { return errOf(source().Transport(nil).RoundTrip(&http.Request{})) },
		"wrapped nil":    func() error { return errOf(source().Wrap(nil).RoundTrip(request)) },
		"wrapped no URL": func() error { return errOf(source().Wrap(nil).RoundTrip(&http.Request{})) },
		"no Transport":   func() error { return errOf((*execcredential.Transport)(nil).RoundTrip(request)) },
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			if err := f(); !isConfigError(err) {
				t.Error(err)
			}
		})
	}
}

// A nil *http.Transport is http.DefaultTransport, as for Transport.
func TestWrapNilTransport(t *testing.T) {
	pool, clock := newPool(t, execcredential.Options{})
	source := pool.SourceOf(&script{now: clock.Now, next: func(int) (execcredential.Material, error) { return execcredential.Material{Token: "a"}, nil }})
	// With credentials of the caller a request is sent as it is; this one ends in the transport, without a connection.
	request := &http.Request{URL: &url.URL{Scheme: "other", Host: "127.0.0.1"}, Header: http.Header{"Authorization": {"Bearer b"}}}
	if _, err := source.Wrap((*http.Transport)(nil)).RoundTrip(request); err == nil || !strings.Contains(err.Error(), "unsupported protocol scheme") {
		t.Error(err)
	}
}

// No verb of fmt, and no handler of slog, prints an argument, a variable or an extension of a Config, however it is reached. For %w
// fmt calls no method of a value without Error, for %p none of a struct: with them, only types that hide their Config are tried.
func TestNoVerbPrintsSecrets(t *testing.T) {
	config := execcredential.Config{
		Command: "login", Args: []string{"s3cr3t"}, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, ProvideClusterInfo: true,
		Env:     []execcredential.EnvVar{{Name: "A", Value: "s3cr3t"}},
		Cluster: execcredential.Cluster{Server: "https://jane:s3cr3t@a", ProxyURL: "http://jane:s3cr3t@b", Extension: []byte(`{"a":"s3cr3t"}`)},
	}
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, config)
	static := sourceOf(t, pool, execcredential.Config{Static: execcredential.Static{Token: "s3cr3t"}})
	account := execcredential.NewAccount(source, static)
	credential := need(static.Get(t.Context()))(t)
	hidden := map[string]any{
		"source": source, "static source": static, "pool": pool, "transport": static.Transport(nil), "wrapper": static.Wrap(nil), "tokens": static.TokenSource(t.Context()),
		"account": account, "account itself": *account, "caller's source": struct{ s *execcredential.Source }{static}, "caller's account": struct{ a *execcredential.Account }{account},
	}
	values := map[string]any{
		"credential": *credential, "pointer to a credential": credential, "credentials": []execcredential.Credential{*credential}, "material": execcredential.Material{Token: "s3cr3t"},
		"config": config, "pointer": &config, "list": []execcredential.Config{config}, "variable": config.Env[0], "variables": config.Env, "cluster": config.Cluster,
		"static": execcredential.Config{Static: execcredential.Static{Token: "s3cr3t"}}, "token": execcredential.Static{Token: "s3cr3t", KeyData: []byte("s3cr3t")},
		"run": execcredential.Run{Config: config, Source: source}, "in a struct": struct{ C any }{config},
	}
	check := func(verb string, values map[string]any) {
		for name, value := range values {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, "s3cr3t") || strings.Contains(strings.ToLower(text), "733363723374") {
				t.Errorf("%s of a %s: %s", verb, name, text)
			}
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%U", "%t", "%e", "%z", "%T"} {
		check(verb, values)
		check(verb, hidden)
	}
	check("%w", hidden)
	check("%p", hidden)
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		for _, all := range []map[string]any{values, hidden} {
			for name, value := range all {
				out.Reset()
				if slog.New(handler).Info("a", "value", value); strings.Contains(out.String(), "s3cr3t") || strings.Contains(out.String(), "czNjcjN0") {
					t.Errorf("%T of a %s: %s", handler, name, out.String())
				}
			}
		}
	}
}

// A timeout of a deadline that has passed must not become none.
func TestNegativeTimeouts(t *testing.T) {
	for field, c := range map[string]struct {
		options execcredential.Options
		config  execcredential.Config
	}{
		"timeout":            {options: execcredential.Options{Timeout: -time.Second}, config: execcredential.Config{Timeout: -time.Second}},
		"interactiveTimeout": {options: execcredential.Options{InteractiveTimeout: -2}, config: execcredential.Config{InteractiveTimeout: -2}},
	} {
		_, inPool := execcredential.NewPool(c.options)
		for _, err := range []error{inPool, c.config.Validate()} {
			var typed *execcredential.ConfigError
			if !errors.As(err, &typed) || typed.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
}
