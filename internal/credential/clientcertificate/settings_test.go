package clientcertificate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/test/testkit"
)

// inDevice is where the refusal of a key in a device leads.
const inDevice = "docs/howto/keys-in-a-device.md"

func TestSettingsThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		settings clientcertificate.Settings
		want     string
	}{
		"no user":        {clientcertificate.Settings{}, "no user"},
		"an empty group": {clientcertificate.Settings{User: "jane", Groups: []string{""}}, "group is empty"},
		"usages":         {clientcertificate.Settings{User: "jane", Usages: []string{"server auth"}}, `lack "client auth"`},
		"too short":      {clientcertificate.Settings{User: "jane", Duration: time.Minute}, "shortest"},
		"negative":       {clientcertificate.Settings{User: "jane", Duration: -time.Hour}, "shortest"},
		"too long":       {clientcertificate.Settings{User: "jane", Duration: 100 * 365 * 24 * time.Hour}, "cannot express"},
		"no time":        {clientcertificate.Settings{User: "jane", Wait: -1}, "negative"},
		"a file":         {clientcertificate.Settings{User: "jane", Key: "/home/jane/key.pem"}, "a key cannot be given"},
		"a disk":         {clientcertificate.Settings{User: "jane", Key: `C:\key.pem`}, "a key cannot be given"},
		"PKCS#11":        {clientcertificate.Settings{User: "jane", Key: "pkcs11:token=card;object=jane"}, inDevice},
		"PKCS#11 engine": {clientcertificate.Settings{User: "jane", Key: "engine:pkcs11:slot_0"}, inDevice},
		"TPM":            {clientcertificate.Settings{User: "jane", Key: "tpm:0x81000001"}, inDevice},
		"TPM's file":     {clientcertificate.Settings{User: "jane", Key: "/dev/tpmrm0"}, inDevice},
		"KMS":            {clientcertificate.Settings{User: "jane", Key: "awskms:///alias/jane"}, inDevice},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			_, err := clientcertificate.New(c.settings, kubeconfig.Access{}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if device := c.want == inDevice; errors.Is(err, clientcertificate.ErrKeyInDevice) != device {
				t.Errorf("a key in a device: %v", err)
			}
		})
	}
}

func TestKeyHoldsWhatDecides(t *testing.T) {
	key := func(s clientcertificate.Settings, server string) map[string]string {
		source := testkit.Need(clientcertificate.New(s, kubeconfig.Access{Server: server, User: "asker"}, nil))(t)
		return source.Key()
	}
	jane := clientcertificate.Settings{User: "jane", Groups: []string{"b", "a"}, Duration: time.Hour}
	base := key(jane, "https://c")
	want := map[string]string{
		"source": "client-certificate", "commonName": "jane", "groups": `["a","b"]`, "duration": "1h0m0s", "server": "https://c", "user": "asker",
		"signer": "kubernetes.io/kube-apiserver-client", "usages": "client auth, digital signature",
	}
	if diff := cmp.Diff(want, base); diff != "" {
		t.Error(diff)
	}
	same := jane
	same.Groups, same.Wait, same.RenewBefore = []string{"a", "b", "a"}, time.Hour, time.Minute
	if diff := cmp.Diff(base, key(same, "https://c")); diff != "" {
		t.Error(diff)
	}
	for what, other := range map[string]clientcertificate.Settings{
		"user": {User: "joe", Groups: jane.Groups, Duration: time.Hour}, "groups": {User: "jane", Duration: time.Hour},
		"one group": {User: "jane", Groups: []string{`a","b`}, Duration: time.Hour}, "duration": {User: "jane", Groups: jane.Groups},
		"signer": {User: "jane", Groups: jane.Groups, Duration: time.Hour, Signer: "example.com/people"},
		"usages": {User: "jane", Groups: jane.Groups, Duration: time.Hour, Usages: []string{"client auth"}},
	} {
		if cmp.Equal(base, key(other, "https://c")) {
			t.Errorf("another %s has the same key", what)
		}
	}
	if cmp.Equal(base, key(jane, "https://d")) {
		t.Error("another server has the same key")
	}
}

func TestConfigurationOfTheCluster(t *testing.T) {
	base := clientcertificate.Settings{Signer: "a/b"}
	got, err := base.WithCluster(json.RawMessage(`{"clientCertificate": {"user": "joe", "signer": "a/b", "groups": ["x"], "duration": "2h"}, "else": 1}`))
	if err != nil || got.User != "joe" || got.Signer != "a/b" || got.Duration != 2*time.Hour || len(got.Groups) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, raw := range []string{"", "null", "[]", `{"oidc": {}}`} {
		if got, err := base.WithCluster(json.RawMessage(raw)); err != nil || got.User != "" || got.Signer != "a/b" {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"clientCertificate": {"usr": "x"}}`, `{"clientCertificate": {"duration": "x"}}`, `{"clientCertificate": {"duration": "-1h"}}`} {
		if _, err := base.WithCluster(json.RawMessage(raw)); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

// The client's cluster may be malicious: it must not get the certificate of another user.
func TestAClusterSaysNothingElse(t *testing.T) {
	base := clientcertificate.Settings{User: "jane", Groups: []string{"a"}, Signer: "a/b", Duration: time.Hour}
	for _, raw := range []string{`{"user": "joe"}`, `{"groups": ["a", "b"]}`, `{"groups": []}`, `{"signer": "a/c"}`, `{"duration": "2h"}`} {
		if got, err := base.WithCluster(json.RawMessage(`{"clientCertificate": ` + raw + `}`)); err == nil {
			t.Errorf("%s is taken: %+v", raw, got)
		}
	}
}
