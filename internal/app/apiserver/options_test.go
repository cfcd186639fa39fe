package apiserver

import (
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/test/testkit"
	"github.com/spf13/pflag"
)

// parse returns the result of Check for a command line.
func parse(t testing.TB, args ...string) error {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	testkit.Must(t, err)
	o := NewOptions(apiserver.NewCodecs(scheme))
	all := pflag.NewFlagSet("apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(args); err != nil {
		return err
	}
	_, err = o.check()
	return err
}

var complete = []string{
	"--issuer=https://issuer.example", "--keys-dir=/keys", "--publish-configmap=ns/name", "--etcd-data-dir=/etcd",
	"--tls-cert-file=/tls.crt", "--tls-private-key-file=/tls.key",
}

func TestCheck(t *testing.T) {
	testkit.Must(t, parse(t, complete...), "complete flags")
	err := parse(t)
	for _, want := range []string{"--issuer is required", "exactly one of --keys-secret", "--publish-configmap or --publish-dir", "--etcd-servers", "--tls-cert-file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no flags: %v, want all that is missing at once, with %q", err, want)
		}
	}
	for extra, want := range map[string]string{
		"--issuer=http://issuer.example":      "must start with https://",
		"--issuer=https://issuer.example/":    "trailing slash",
		"--issuer=https://issuer.example?a=b": "query",
		"--issuer=https://a:b@issuer.example": "userinfo",
		"--token-min-duration=5m":             "shorter than 10m",
		"--token-max-duration=30m":            "default token lifetime",
		"--token-default-duration=100h":       "is not between",
		"--publish-configmap=name":            "must be NAMESPACE/NAME",
		"--publish-dir=/keys/":                "--publish-dir must not be --keys-dir",
		"--etcd-servers=https://etcd.example": "exactly one of --storage=cluster",
		"--token-min-duration=soon":           "invalid argument",
		"--storage=cluster":                   "--storage=cluster needs no etcd",
		"--storage=etcd":                      "contradicts",
		"--storage=disk":                      "must be cluster, etcd or embedded",
	} {
		if err := parse(t, append(complete, extra)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", extra, err, want)
		}
	}
}

// Whatever stands on the command line, it is accepted or refused; an accepted issuer is one that relying parties take.
func FuzzFlags(f *testing.F) {
	for _, seed := range [][2]string{
		{"https://issuer.example", "1h"}, {"https://", "0s"}, {"https://x/../y", "-1h"}, {"HTTPS://x", "1"}, {"https://x#", "9999999h"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, issuer, duration string) {
		if err := parse(t, append(complete, "--issuer="+issuer, "--token-default-duration="+duration)...); err == nil {
			if !strings.HasPrefix(issuer, "https://") || strings.ContainsAny(issuer, "?#@ \n") || strings.HasSuffix(issuer, "/") {
				t.Errorf("issuer %q was accepted", issuer)
			}
		}
	})
}
