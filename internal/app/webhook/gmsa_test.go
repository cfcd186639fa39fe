package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
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
		t.Errorf("%q is not a host name of 15 characters", name)
	}
	if other := hostname(bytes.NewReader(make([]byte, 8))); other == name {
		t.Errorf("%q for other random bytes too", other)
	}
}

// Without gMSA no right to GMSACredentialSpecs is needed, and no review about them is answered.
func TestWithoutAccounts(t *testing.T) {
	a := newAuthority(t)
	cluster := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s is requested", r.URL) }))
	t.Cleanup(cluster.Close)
	var health string
	url := start(t, a, func(c *Config) {
		c.Kubeconfig, c.HealthPort, c.GMSA.Off = kubeconfig(t, a, "one", cluster.URL), testkit.FreePort(t), true
		health = "https://127.0.0.1:" + strconv.Itoa(c.HealthPort)
	})
	client := client(t, a, a.issue(t, "client"))
	testkit.Eventually(t, "it is ready", func() bool {
		response, err := client.Get(health + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	for path, want := range map[string]int{"/mutate": http.StatusNotFound, "/pods": http.StatusUnsupportedMediaType} {
		response, err := client.Post(url+path, "text/plain", nil)
		must(t, err)
		defer response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, response.Status, want)
		}
	}
}

// It is not ready before it knows the objects, and reports what keeps it from that.
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
		c.Kubeconfig, c.HealthPort = kubeconfig(t, a, "one", cluster.URL), testkit.FreePort(t)
		health = "https://127.0.0.1:" + strconv.Itoa(c.HealthPort)
	})
	client := client(t, a, a.issue(t, "client"))
	ready := func() (int, string) {
		response, err := client.Get(health + "/readyz")
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	testkit.Eventually(t, "it is not ready", func() bool {
		code, body := ready()
		if code == http.StatusOK {
			t.Fatal("ready, and nothing could be listed")
		}
		return strings.Contains(body, "can't be listed")
	})
	close(listable)
	testkit.Eventually(t, "it is ready", func() bool { code, _ := ready(); return code == http.StatusOK })
	if response, err := client.Post(url+"/mutate", "text/plain", nil); err != nil || response.StatusCode != http.StatusUnsupportedMediaType || response.TLS.Version < tls.VersionTLS12 {
		t.Errorf("/mutate: %v, %v", response, err)
	}
}

// A webhook that is stopping answers the requests that it got before.
func TestReviewsInFlightAreAnswered(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server")
	asked, answer := make(chan struct{}), make(chan struct{})
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/apis/windows.k8s.io/v1/gmsacredentialspecs/late" {
			close(asked)
			<-answer
			_, _ = io.WriteString(w, `{"apiVersion":"windows.k8s.io/v1","kind":"GMSACredentialSpec","metadata":{"name":"late"},"credspec":{"CmsPlugins":["ActiveDirectory"]}}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
			_, _ = io.WriteString(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{},"status":{"allowed":true}}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}))
	t.Cleanup(cluster.Close)
	ctx, stop := context.WithCancel(t.Context())
	p, err := assemble(ctx, Config{TLSCertFile: a.file("server.crt"), TLSPrivateKeyFile: a.file("server.key"), ClientCAFile: a.file("ca.crt"), Kubeconfig: kubeconfig(t, a, "one", cluster.URL), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- p.run(ctx) }()
	answered := make(chan string, 1)
	client := client(t, a, a.issue(t, "client"))
	go func() {
		response, err := client.Post("https://"+p.reviews.Address().String()+"/mutate", "application/json", strings.NewReader(
			`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","resource":{"version":"v1","resource":"pods"},"operation":"CREATE","namespace":"n","object":{"spec":{"serviceAccountName":"a","securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"late"}}}}}}`))
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answered <- string(body)
	}()
	<-asked
	stop()
	testkit.Eventually(t, "it takes nothing new", func() bool {
		connection, err := net.Dial("tcp", p.reviews.Address().String())
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
	close(answer)
	if got := <-answered; !strings.Contains(got, `"allowed":true,"patch"`) {
		t.Errorf("the open review was answered with %s", got)
	}
	must(t, <-stopped)
}
