package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/workloadidentities"
)

// getsTokensByAgent has the agent of a joined cluster give tokens to pods of it, as the driver of a node requests them. The account web may use
// the identity banana of its namespace.
func (p plane) getsTokensByAgent(t *testing.T, web *corev1.ServiceAccount, port int, cluster any) {
	t.Helper()
	agent := &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", port), TLSClientConfig: rest.TLSClientConfig{CAFile: p.CAFile}}
	node := p.nodeObject(t)
	tokenFor := func(pod *corev1.Pod, audiences ...string) string {
		spec := authenticationv1.TokenRequestSpec{Audiences: audiences}
		if pod.Name != "" {
			spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
		}
		token, err := p.client(t).CoreV1().ServiceAccounts(pod.Namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return token.Status.Token
	}
	ask := func(token string) (v1alpha1.TokenRequestStatus, error) {
		return workloadidentities.NewSelfTokens(agent).Token(t.Context(), types.NamespacedName{Namespace: web.Namespace, Name: "banana"}, identity.NewToken(token))
	}
	pod := p.podOn(t, web.Namespace, "web-0", "web", node.Name)
	own := tokenFor(pod, v1alpha1.AudienceAgent)
	got, err := ask(own)
	if err != nil || got.TargetSystem == nil || got.TargetSystem.Type != "aws" {
		t.Fatalf("the pod's token: %+v, %v", got.TargetSystem, err)
	}
	_, c := claims(t, got.Token)
	want := map[string]any{"namespace": web.Namespace, "serviceaccount": map[string]any{"name": "web", "uid": string(web.UID)}, "cluster": cluster}
	if diff := cmp.Diff(any(want), c["kubernetes.io"]); diff != "" || c["exp"].(float64)-c["iat"].(float64) != 3600 {
		t.Errorf("from %v to %v, kubernetes.io (-want +got):\n%s", c["iat"], c["exp"], diff)
	}
	log, err := os.ReadFile(filepath.Join(p.Dir, "logs", "agent.log"))
	if line := fmt.Sprintf("pod=web-0 podUID=%s node=%s nodeUID=%s jti=%s", pod.UID, node.Name, node.UID, c["jti"]); err != nil || !strings.Contains(string(log), line) {
		t.Errorf("the log of the agent lacks %q, %v", line, err)
	}
	if strings.Contains(string(log), got.Token) || strings.Contains(string(log), own) {
		t.Error("a token is in the log of the agent")
	}
	if answer := do(t, p.bearer(t, own), "GET", "/api/v1/namespaces/"+web.Namespace, "", ""); answer.Code != http.StatusUnauthorized {
		t.Errorf("the cluster itself takes the token that is the agent's: %d", answer.Code)
	}

	if _, err := p.client(t).CoreV1().ServiceAccounts(web.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "idle"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	unbound := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace}, Spec: corev1.PodSpec{ServiceAccountName: "web"}}
	for name, test := range map[string]struct{ token, words string }{
		"a token for the API server": {tokenFor(pod), "is not valid for the audience"},
		"no token of the cluster":    {got.Token, "is not valid for the audience"},
		"a token without a pod":      {tokenFor(unbound, v1alpha1.AudienceAgent), "is not bound to a pod"},
		"a pod that is on no node":   {tokenFor(p.podOn(t, web.Namespace, "floating", "web", ""), v1alpha1.AudienceAgent), "names no node"},
		"an account without use":     {tokenFor(p.podOn(t, web.Namespace, "idle-0", "idle", node.Name), v1alpha1.AudienceAgent), "may not use the WorkloadIdentity"},
	} {
		if got, err := ask(test.token); err == nil || !strings.Contains(err.Error(), test.words) || got.Token != "" {
			t.Errorf("%s: %v, want %q", name, err, test.words)
		}
	}
	// The cluster takes the token of a deleted pod for another minute.
	none := int64(0)
	if err := p.client(t).CoreV1().Pods(web.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got, err := ask(own); err == nil || got.Token != "" {
			return fmt.Errorf("a pod that is gone gets a token, %v", err)
		}
		return nil
	})
}
