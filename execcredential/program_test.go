package execcredential_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func token(exectest.Call) exectest.Answer { return exectest.Token("abc", time.Time{}) }

func TestProgramIsTold(t *testing.T) {
	provider := exectest.NewProvider(t, token)
	config := provider.Config()
	config.Args = []string{"--for", "jane"}
	config.Env = append(config.Env,
		execcredential.EnvVar{Name: "OVERRIDDEN", Value: "config"},
		execcredential.EnvVar{Name: "TWICE", Value: "first"}, execcredential.EnvVar{Name: "TWICE", Value: "second"},
		execcredential.EnvVar{Name: "KUBERNETES_EXEC_INFO", Value: "not this"})
	config.ProvideClusterInfo = true
	config.Cluster = execcredential.Cluster{Server: "https://1.2.3.4", Extension: []byte(`{ "a": "<b>" }`)}
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, config)
	execcredential.SetEnviron(source, append(os.Environ(), "OVERRIDDEN=process", "OF_PROCESS=kept"))
	got, err := source.Get(t.Context())
	if err != nil || got.Token() != "abc" {
		t.Fatalf("credential %q, error %v", got.Token(), err)
	}
	call := provider.Calls()[0]
	if !slices.Equal(call.Args, config.Args) {
		t.Errorf("arguments %q", call.Args)
	}
	if call.Stdin != "" {
		t.Errorf("standard input %q", call.Stdin)
	}
	want := `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://1.2.3.4","config":{"a":"\u003cb\u003e"}},"interactive":false}}` + "\n"
	if call.Info != want {
		t.Errorf("KUBERNETES_EXEC_INFO is %s, want %s", call.Info, want)
	}
	for _, variable := range []string{"OVERRIDDEN=config", "OF_PROCESS=kept", "TWICE=second"} {
		if !slices.Contains(call.Env, variable) {
			t.Errorf("variable %s is missing", variable)
		}
	}
}

func TestConfigIsCopied(t *testing.T) {
	provider := exectest.NewProvider(t, token)
	config := provider.Config()
	config.Args = []string{"before"}
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, config)
	config.Args[0], config.Env[0].Value = "after", "nowhere"
	need(source.Get(t.Context()))(t)
	if got := provider.Calls()[0].Args; got[0] != "before" {
		t.Errorf("arguments %q", got)
	}
}

// Every kind of malformed output is its own error, nothing of it is kept, and the next good output works.
func TestMalformedOutputOfAProgram(t *testing.T) {
	answers := make(chan exectest.Answer, 1)
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return <-answers })
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, provider.Config())
	answers <- exectest.Token("first", start.Add(-time.Second)) // an old credential, which must never come back
	need(source.Get(t.Context()))(t)
	for name, bad := range malformed(t) {
		answers <- exectest.Answer{Stdout: bad.output, Stderr: "password=hunter22 it went wrong"}
		_, err := source.Refresh(t.Context())
		if !errors.Is(err, bad.want) {
			t.Errorf("%s: error %v, want %q", name, err, bad.want)
		}
		if err != nil && (!strings.Contains(err.Error(), "it went wrong") || strings.Contains(err.Error(), "hunter22")) {
			t.Errorf("%s: standard error in %q", name, err)
		}
		if got, err := source.Get(t.Context()); !errors.Is(err, bad.want) {
			t.Errorf("%s: afterwards there is %q and error %v", name, got.Token(), err)
		}
	}
	answers <- exectest.Token("good", time.Time{})
	if got, err := source.Refresh(t.Context()); err != nil || got.Token() != "good" {
		t.Fatalf("credential %v, error %v", got, err)
	}
	if got, err := source.Get(t.Context()); err != nil || got.Token() != "good" {
		t.Fatalf("credential %v, error %v", got, err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return exectest.Answer{Flood: true} })
	pool, _ := newPool(t, execcredential.Options{})
	_, err := sourceOf(t, pool, provider.Config()).Get(t.Context())
	if !errors.Is(err, execcredential.OutputTooLarge) {
		t.Fatalf("error %v", err)
	}
	<-provider.Calls()[0].Ended
}

func TestExit(t *testing.T) {
	answer := exectest.Answer{ExitCode: 3, Stderr: "no\x1b[31m network\n"}
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return answer })
	pool, _ := newPool(t, execcredential.Options{})
	_, err := sourceOf(t, pool, provider.Config()).Get(t.Context())
	var exit *execcredential.ExitError
	if !errors.As(err, &exit) || exit.Code != 3 || exit.Stderr != "noU+001B[31m network" {
		t.Fatalf("error %#v", err)
	}
}

// A run that takes too long is ended with all that it started, and what holds its output is not waited for.
func TestTimeoutEndsTheProcessTree(t *testing.T) {
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		return exectest.Answer{Hang: true, LeaveBehind: true, Stderr: "waiting for a network"}
	})
	pool, clock := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, provider.Config())
	failed := make(chan error)
	go func() {
		_, err := source.Get(context.Background())
		failed <- err
	}()
	child := <-provider.LeftBehind()
	clock.WaitForTimers(1)
	clock.Advance(60 * time.Second)
	err := <-failed
	var timeout *execcredential.TimeoutError
	if !errors.As(err, &timeout) || timeout.After != 60*time.Second || timeout.Stderr != "waiting for a network" || !timeout.Timeout() {
		t.Fatalf("error %#v", err)
	}
	<-provider.Calls()[0].Ended
	<-child.Ended
}

func TestWhatIsLeftBehindIsNotWaitedFor(t *testing.T) {
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		answer := exectest.Token("abc", time.Time{})
		answer.LeaveBehind = true
		return answer
	})
	pool, _ := newPool(t, execcredential.Options{})
	got, err := sourceOf(t, pool, provider.Config()).Get(t.Context())
	if err != nil || got.Token() != "abc" {
		t.Fatalf("credential %v, error %v", got, err)
	}
	select {
	case child := <-provider.LeftBehind():
		select {
		case <-child.Ended:
			t.Error("a background process of a program that succeeded was ended")
		default:
		}
	case <-t.Context().Done():
	}
}

// How long a program may take is set by its config, or else by the pool, and has a default: for one at a terminal, too.
func TestDeadlines(t *testing.T) {
	input := need(os.Open(os.DevNull))(t)
	defer input.Close()
	for name, c := range map[string]struct {
		options     execcredential.Options
		timeouts    [2]time.Duration // of the config
		interactive bool
		want        time.Duration // zero for none
	}{
		"default":                           {want: time.Minute},
		"of the pool":                       {options: execcredential.Options{Timeout: time.Second, InteractiveTimeout: time.Hour}, want: time.Second},
		"of the config":                     {options: execcredential.Options{Timeout: time.Second}, timeouts: [2]time.Duration{time.Hour, 1}, want: time.Hour},
		"never":                             {options: execcredential.Options{Timeout: execcredential.NoTimeout}},
		"never, of the config":              {timeouts: [2]time.Duration{execcredential.NoTimeout, 1}},
		"at a terminal":                     {interactive: true, want: 10 * time.Minute},
		"at a terminal, of the pool":        {interactive: true, options: execcredential.Options{Timeout: 1, InteractiveTimeout: time.Hour}, want: time.Hour},
		"at a terminal, of the config":      {interactive: true, options: execcredential.Options{InteractiveTimeout: 1}, timeouts: [2]time.Duration{1, time.Hour}, want: time.Hour},
		"at a terminal, never":              {interactive: true, options: execcredential.Options{InteractiveTimeout: execcredential.NoTimeout}},
		"at a terminal, never, of a config": {interactive: true, timeouts: [2]time.Duration{1, execcredential.NoTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			running, release := make(chan bool), make(chan bool)
			provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
				running <- true
				<-release
				return exectest.Token("abc", time.Time{})
			})
			c.options.Stdin = input
			pool, clock := newPool(t, c.options)
			config := provider.Config()
			config.Timeout, config.InteractiveTimeout = c.timeouts[0], c.timeouts[1]
			if c.interactive {
				config.InteractiveMode = execcredential.Always
			}
			source := sourceOf(t, pool, config)
			if c.interactive {
				execcredential.SetTerminal(source, true)
			}
			got := make(chan error, 1)
			go func() {
				_, err := source.Get(context.Background())
				got <- err
			}()
			<-running
			if c.want > 0 {
				clock.WaitForTimers(1)
				clock.Advance(c.want - 1)
			} else {
				clock.Advance(1000 * time.Hour)
			}
			select {
			case err := <-got:
				t.Fatalf("error %v", err)
			default:
			}
			if c.want == 0 {
				release <- true
				expect(t, <-got)
				return
			}
			clock.Advance(1)
			var timeout *execcredential.TimeoutError
			if err := <-got; !errors.As(err, &timeout) || timeout.After != c.want {
				t.Errorf("error %v", err)
			}
			close(release)
		})
	}
}

func TestInteractiveModes(t *testing.T) {
	for name, c := range map[string]struct {
		mode        execcredential.InteractiveMode
		terminal    bool
		unavailable string
		interactive bool
		reason      string
	}{
		"never":                     {mode: execcredential.Never, terminal: true},
		"if available":              {mode: execcredential.IfAvailable, terminal: true, interactive: true},
		"if available, no terminal": {mode: execcredential.IfAvailable},
		"if available, in use":      {mode: execcredential.IfAvailable, terminal: true, unavailable: "used by the manifest reader"},
		"always":                    {mode: execcredential.Always, terminal: true, interactive: true},
		"always, no terminal":       {mode: execcredential.Always, unavailable: "used", reason: "standard input is not a terminal"},
		"always, in use":            {mode: execcredential.Always, terminal: true, unavailable: "used by the manifest reader", reason: "standard input is unavailable: used by the manifest reader"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "typed")
			must(t, os.WriteFile(file, []byte("typed"), 0o600))
			input := need(os.Open(file))(t)
			defer input.Close()
			provider := exectest.NewProvider(t, token)
			pool, _ := newPool(t, execcredential.Options{Stdin: input})
			config := provider.Config()
			config.InteractiveMode, config.StdinUnavailable = c.mode, c.unavailable
			source := sourceOf(t, pool, config)
			execcredential.SetTerminal(source, c.terminal)
			_, err := source.Get(t.Context())
			var typed *execcredential.InteractiveError
			if c.reason != "" {
				if !errors.As(err, &typed) || typed.Reason != c.reason || provider.Runs() != 0 {
					t.Fatalf("error %v after %d runs", err, provider.Runs())
				}
				return
			}
			must(t, err)
			call := provider.Calls()[0]
			if strings.Contains(call.Info, `"interactive":true`) != c.interactive || (call.Stdin == "typed") != c.interactive {
				t.Errorf("passed %s, standard input %q", call.Info, call.Stdin)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	folder := t.TempDir()
	script := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(content), mode))
		return path
	}
	pool, _ := newPool(t, execcredential.Options{})
	get := func(command string) error {
		source := sourceOf(t, pool, execcredential.Config{Command: command, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, InstallHint: "brew install it\x1b[0m", Folder: folder})
		return errOf(source.Get(t.Context()))
	}
	for name, command := range map[string]string{"in PATH": "no-such-program-anywhere", "relative": "./none", "absolute": filepath.Join(folder, "none")} {
		var typed *execcredential.NotFoundError
		if err := get(command); !errors.As(err, &typed) || typed.Command != command || !strings.HasSuffix(err.Error(), "\n\nbrew install itU+001B[0m") {
			t.Errorf("%s: error %#v", name, err)
		}
		if err := get(command); !errors.As(err, &typed) || strings.Contains(err.Error(), "brew") {
			t.Errorf("%s: the second time: error %v", name, err)
		}
	}
	for name, command := range map[string]string{
		"not executable": script("plain", "#!/bin/sh\n", 0o600),
		"a folder":       folder,
		"no interpreter": script("interpreter", "#!/no/such/interpreter\n", 0o700),
		"not a program":  script("text", "hello\n", 0o700),
	} {
		var typed *execcredential.StartError
		if err := get(command); !errors.As(err, &typed) || typed.Path != command {
			t.Errorf("%s: error %#v", name, err)
		}
	}
}

func TestSizes(t *testing.T) {
	provider := exectest.NewProvider(t, token)
	config := provider.Config()
	config.ProvideClusterInfo = true
	config.Cluster = execcredential.Cluster{Server: "https://1.2.3.4", CertificateAuthorityData: []byte(strings.Repeat("A", 200<<10))}
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, config)
	var large *execcredential.TooLargeError
	if _, err := source.Get(t.Context()); runtime.GOOS == "linux" && (!errors.As(err, &large) || !strings.Contains(large.What, "KUBERNETES_EXEC_INFO") || !strings.Contains(err.Error(), "provideClusterInfo")) {
		t.Errorf("certificate authorities of 200 KiB: error %v", err)
	}
	config = provider.Config()
	config.Args = []string{strings.Repeat("a", 1000)}
	for name, c := range map[string]struct {
		each, total int
		what        string
	}{
		"argument": {each: 900, what: "argument 1"},
		"total":    {total: 1000, what: "all arguments and environment variables together"},
		"fits":     {each: 100 << 10, total: 1 << 20},
	} {
		pool, _ := newPool(t, execcredential.Options{})
		source := sourceOf(t, pool, config)
		execcredential.SetLimits(source, c.each, c.total)
		_, err := source.Get(t.Context())
		if c.what == "" && err != nil || c.what != "" && (!errors.As(err, &large) || large.What != c.what) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Comments between certificates are left out if it does not fit with them, and only then: client-go never leaves them out.
func TestCommentsThatDoNotFit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limit of a variable is that of Linux")
	}
	first, second := exectest.NewAuthority(t).PEM(), exectest.NewAuthority(t).PEM()
	bundle := func(comment string) []byte {
		return slices.Concat([]byte(comment), first, []byte(comment+"\r\n"), second, []byte("the end"))
	}
	for name, c := range map[string]struct{ given, told []byte }{
		"they fit":        {given: bundle("# one\n"), told: bundle("# one\n")},
		"they do not fit": {given: bundle(strings.Repeat("Subject: one\n", 10000)), told: slices.Concat(first, second)},
	} {
		provider := exectest.NewProvider(t, token)
		config := provider.Config()
		config.ProvideClusterInfo = true
		config.Cluster = execcredential.Cluster{Server: "https://1.2.3.4", CertificateAuthorityData: c.given}
		pool, _ := newPool(t, execcredential.Options{})
		if _, err := sourceOf(t, pool, config).Get(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var told struct {
			Spec struct {
				Cluster struct {
					Data []byte `json:"certificate-authority-data"`
				}
			}
		}
		if err := json.Unmarshal([]byte(provider.Calls()[0].Info), &told); err != nil || !bytes.Equal(told.Spec.Cluster.Data, c.told) {
			t.Errorf("%s: passed %d bytes, error %v: %.200s", name, len(told.Spec.Cluster.Data), err, told.Spec.Cluster.Data)
		}
	}
}

// Variables that the check lets through, the operating system takes.
func TestLargestVariable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limit of a variable is that of Linux")
	}
	provider := exectest.NewProvider(t, token)
	config := provider.Config()
	config.Env = append(config.Env, execcredential.EnvVar{Name: "V", Value: strings.Repeat("v", 32*os.Getpagesize()-3)})
	pool, _ := newPool(t, execcredential.Options{})
	expect(t, errOf(sourceOf(t, pool, config).Get(t.Context())), "a variable of the largest size")
	config.Env[len(config.Env)-1].Value += "v"
	var large *execcredential.TooLargeError
	if _, err := sourceOf(t, pool, config).Get(t.Context()); !errors.As(err, &large) {
		t.Errorf("a variable that is too large: %v", err)
	}
}

func TestSecretsOnStandardError(t *testing.T) {
	_, key := exectest.NewAuthority(t).Issue("jane", start, start.Add(time.Hour))
	secret := "s3cr3t-value-of-a-variable"
	said := strings.Join([]string{
		"Authorization: Bearer abcdefghijkl", "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl", "password=hunter22", `{"refresh_token": "rt-0123456789"}`,
		"variable " + secret, "same as output: the-token-of-the-output", key, "cut off: eyJhbGciOiJIUzI1NiJ9.eyJzdW", "the end",
	}, "\n")
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		return exectest.Answer{Stdout: `{"token":"the-token-of-the-output"}`, Stderr: said}
	})
	config := provider.Config()
	config.Env = append(config.Env, execcredential.EnvVar{Name: "SECRET", Value: secret})
	pool, _ := newPool(t, execcredential.Options{})
	_, err := sourceOf(t, pool, config).Get(t.Context())
	if !errors.Is(err, execcredential.NoVersion) || !strings.HasSuffix(err.Error(), "the end") {
		t.Fatalf("error %v", err)
	}
	for _, hidden := range []string{"abcdefghijkl", "eyJ", "hunter22", "rt-0123456789", secret, "the-token-of-the-output", "PRIVATE KEY", key[40:80]} {
		if strings.Contains(err.Error(), hidden) {
			t.Errorf("error shows %q: %v", hidden, err)
		}
	}
	long := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		return exectest.Answer{ExitCode: 1, Stderr: strings.Repeat("x", 3000) + " " + strings.Repeat("word ", 10000) + "the end"}
	})
	var exit *execcredential.ExitError
	if _, err := sourceOf(t, pool, long.Config()).Get(t.Context()); !errors.As(err, &exit) || len(exit.Stderr) > 5000 || !strings.HasSuffix(exit.Stderr, "the end") {
		t.Errorf("error %v", err)
	}
}

// The ID of a key may have the letters by which every token begins: which key is meant must stay to be seen.
func TestIDsOfKeysOnStandardError(t *testing.T) {
	ids := []string{"eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ", "ab-eyJhbGciOiJSUzI1NiIsImtpZC", "_eyJ0123456789-eyJ0123456789"}
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		return exectest.Answer{ExitCode: 1, Stderr: "no such keys: " + strings.Join(ids, ", ")}
	})
	pool, _ := newPool(t, execcredential.Options{})
	_, err := sourceOf(t, pool, provider.Config()).Get(t.Context())
	if err == nil || !strings.Contains(err.Error(), strings.Join(ids, ", ")) {
		t.Errorf("error %v", err)
	}
}

// A config does not set the count of programs that run each other back.
func TestDepthIsNotTheConfigs(t *testing.T) {
	provider := exectest.NewProvider(t, token)
	pool, _ := newPool(t, execcredential.Options{})
	config := provider.Config()
	config.Env = append(config.Env, execcredential.EnvVar{Name: "EXECCREDENTIAL_DEPTH", Value: "-100"})
	source := sourceOf(t, pool, config)
	execcredential.SetEnviron(source, append(os.Environ(), "EXECCREDENTIAL_DEPTH=5"))
	if _, err := source.Get(t.Context()); !errors.As(err, new(*execcredential.PolicyError)) {
		t.Errorf("error %v, want a PolicyError", err)
	}
}

// blocked is a writer without a reader.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) { <-b; return len(p), nil }

// Unread messages keep neither the program nor Close.
func TestUnreadStderr(t *testing.T) {
	stderr := make(blocked)
	defer close(stderr)
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		answer := exectest.Token("abc", time.Time{})
		answer.Stderr = strings.Repeat("message\n", 100_000)
		return answer
	})
	pool, _ := newPool(t, execcredential.Options{Stderr: stderr})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := sourceOf(t, pool, provider.Config()).Get(ctx); err != nil || got.Token() != "abc" {
		t.Errorf("credential %v, error %v", got, err)
	}
	closed := make(chan bool)
	go func() { _ = pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-ctx.Done():
		t.Error("Close waits for who does not read")
	}
}

// Values of variables are secret if their names say so, or a policy does. Others are words that messages need.
func TestSecretVariables(t *testing.T) {
	for name, c := range map[string]struct {
		variable, value string
		ofPool, of      execcredential.Policy
		secret          bool
	}{
		"word":              {variable: "STAGE", value: "production"},
		"where a secret is": {variable: "TOKEN_FILE", value: "/run/secrets/token"},
		"identifier":        {variable: "AWS_ACCESS_KEY_ID", value: "AKIAEXAMPLE"},
		"short":             {variable: "PIN", value: "123"},
		"name":              {variable: "CLIENT_SECRET", value: "login1", secret: true},
		"small name":        {variable: "api-key", value: "login1", secret: true},
		"second":            {variable: "PASSWORD_2", value: "login1", secret: true},
		"key":               {variable: "AWS_SECRET_ACCESS_KEY", value: "login1", secret: true},
		"pool's policy":     {variable: "STAGE", value: "abc", ofPool: execcredential.Policy{SecretEnv: []string{"STAGE"}}, secret: true},
		"config's policy":   {variable: "STAGE", value: "abc", of: execcredential.Policy{SecretEnv: []string{"OTHER", "STAGE"}}, secret: true},
		"password in a URL": {variable: "HTTPS_PROXY", value: "http://jane:hunter2@proxy", secret: true},
	} {
		t.Run(name, func(t *testing.T) {
			provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
				return exectest.Answer{ExitCode: 1, Stderr: "cannot use " + c.value + " here"}
			})
			pool, _ := newPool(t, execcredential.Options{Policy: c.ofPool})
			config := provider.Config()
			config.Env = append(config.Env, execcredential.EnvVar{Name: c.variable, Value: c.value})
			config.Policy = c.of
			var exit *execcredential.ExitError
			if _, err := sourceOf(t, pool, config).Get(t.Context()); !errors.As(err, &exit) || strings.Contains(exit.Stderr, c.value) == c.secret {
				t.Errorf("%v", err)
			}
		})
	}
}
