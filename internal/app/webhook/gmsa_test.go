package webhook

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFlagsOfAccounts(t *testing.T) {
	command := NewCommand()
	config := GMSAConfig{}
	finish := config.addFlags(command.PersistentFlags())
	must(t, command.PersistentFlags().Parse(nil))
	finish()
	needs := config.needs()
	if needs.Annotations || needs.RequireUser || needs.Hostname != nil || !slices.Contains(needs.Controllers, "system:serviceaccount:kube-system:replicaset-controller") {
		t.Errorf("by default: %+v", needs)
	}
	if bare := (GMSAConfig{}).needs(); !slices.Equal(bare.Controllers, needs.Controllers) {
		t.Errorf("the zero value has the controllers %v", bare.Controllers)
	}
	must(t, command.PersistentFlags().Parse([]string{"--feature-gates=WindowsGMSAAnnotations=true", "--gmsa-require-user", "--gmsa-controller-users=a,b", "--gmsa-random-hostname"}))
	finish()
	if needs := config.needs(); !needs.Annotations || !needs.RequireUser || !slices.Equal(needs.Controllers, []string{"a", "b"}) || needs.Hostname == nil {
		t.Errorf("with all flags: %+v", needs)
	}
	if err := command.PersistentFlags().Parse([]string{"--feature-gates=Windows=true"}); err == nil || !strings.Contains(err.Error(), "Windows") {
		t.Errorf("a gate that there is not: %v", err)
	}
}

func TestHostname(t *testing.T) {
	name := hostname(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}))
	if !regexp.MustCompile(`^g-[a-z2-7]{13}$`).MatchString(name) {
		t.Errorf("%q is no host name of 15 characters", name)
	}
	if other := hostname(bytes.NewReader(make([]byte, 8))); other == name {
		t.Errorf("%q for other random bytes too", other)
	}
}

// It is not ready before it knows the objects, and says what keeps it from that.
func TestReadinessWaitsForCredentialSpecs(t *testing.T) {
	a := newAuthority(t)
	listable := make(chan struct{})
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		select {
		case <-listable:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no right to list"}`)
		}
	}))
	t.Cleanup(cluster.Close)
	var health string
	url := start(t, a, func(c *Config) {
		c.Kubeconfig, c.HealthPort = kubeconfig(t, a, "one", cluster.URL), freePort(t)
		health = "https://127.0.0.1:" + strconv.Itoa(c.HealthPort)
	})
	client := client(t, a)
	ready := func() (int, string) {
		response, err := client.Get(health + "/readyz")
		must(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		must(t, err)
		return response.StatusCode, string(body)
	}
	await(t, func() bool {
		code, body := ready()
		if code == http.StatusOK {
			t.Fatal("ready, and nothing could be listed")
		}
		return strings.Contains(body, "can't be listed")
	})
	close(listable)
	await(t, func() bool { code, _ := ready(); return code == http.StatusOK })
	if response, err := client.Post(url+"/mutate", "text/plain", nil); err != nil || response.StatusCode != http.StatusUnsupportedMediaType || response.TLS.Version < tls.VersionTLS12 {
		t.Errorf("/mutate: %v, %v", response, err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-deadline:
			t.Fatal("it never came")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
