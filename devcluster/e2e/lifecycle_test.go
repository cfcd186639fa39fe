//go:build linux

package e2e

import (
	"context"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// One cluster, from its first start over a kill -9 to its orderly end.
func TestLifecycle(t *testing.T) {
	dir := t.TempDir()
	first := up(t, dir)
	client := first.client(t)
	createConfigMap(t, client)
	token := serviceAccountToken(t, client)

	child := first.child(t)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.exited
	untilGone(t, child)

	second := up(t, dir)
	if _, err := second.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("a ConfigMap made before kill -9: %v", err)
	}
	if got, want := whoIs(t, second.config(t), token), "system:serviceaccount:default:default"; got != want {
		t.Errorf("a token made before kill -9 is %q's, want %q", got, want)
	}

	// A machine that is busy for the few seconds that a part is given is not busy twice.
	if !second.stops(t) && !up(t, dir).stops(t) {
		t.Error("a part did not stop on request")
	}
}

// stops ends a cluster in order, and reports whether each part of it ended in time.
func (c *cluster) stops(t *testing.T) bool {
	t.Helper()
	child := c.child(t)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.exitCode(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	untilGone(t, child)
	server, err := url.Parse(c.config(t).Host)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", server.Host); err == nil {
		_ = conn.Close()
		t.Errorf("something still listens on %s", server.Host)
	}
	return !strings.Contains(c.printed(t), "stopped waiting for it")
}

func TestEndsWithItsChild(t *testing.T) {
	c := up(t, t.TempDir())
	if err := syscall.Kill(c.child(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := c.exitCode(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if text := c.printed(t); !strings.Contains(text, "credence-devcluster: kube-controller-manager ended: process ") || !strings.Contains(text, ": signal: killed") {
		t.Error("the log does not show that kube-controller-manager was killed")
	}
}

func createConfigMap(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	eventually(t, "a ConfigMap in the namespace default, which kube-apiserver makes", func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx, made, metav1.CreateOptions{})
		return err
	})
}

// serviceAccountToken requests a token of the account that kube-controller-manager makes in every namespace.
func serviceAccountToken(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	var token string
	eventually(t, "a token of service account default", func(ctx context.Context) error {
		answer, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default",
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		token = answer.Status.Token
		return nil
	})
	return token
}

// whoIs is the name by which the server knows the bearer.
func whoIs(t *testing.T, config *rest.Config, token string) string {
	t.Helper()
	bearer := rest.AnonymousClientConfig(config)
	bearer.BearerToken = token
	client, err := kubernetes.NewForConfig(bearer)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}
