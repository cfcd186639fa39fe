package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/workloadidentities"
	"github.com/credence-id/credence/test/testkit"
)

// getsTokensByAgent has the agent of a joined cluster give tokens of the identity banana to pods of the cluster, as the driver of a node requests
// them.
func (p plane) getsTokensByAgent(t *testing.T, namespace string, port int, cluster any) {
	t.Helper()
	// Accounts that list identities have pods with a gate.
	account := p.userOf(t, namespace, "guest", "banana")
	p.userOf(t, namespace, "idle")
	agent := &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", port), TLSClientConfig: rest.TLSClientConfig{CAFile: p.CAFile}}
	node := p.nodeObject(t)
	tokenFor := func(pod *corev1.Pod, audiences ...string) string {
		spec := authenticationv1.TokenRequestSpec{Audiences: audiences}
		if pod.Name != "" {
			spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
		}
		token := need(p.client(t).CoreV1().ServiceAccounts(pod.Namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{}))(t)
		return token.Status.Token
	}
	ask := func(token string) (v1alpha1.TokenRequestStatus, error) {
		return workloadidentities.NewSelfTokens(agent).Token(t.Context(), types.NamespacedName{Namespace: namespace, Name: "banana"}, identity.NewToken(token))
	}
	pod := p.podOn(t, namespace, "guest-0", "guest", node.Name)
	own := tokenFor(pod, v1alpha1.AudienceAgent)
	var got v1alpha1.TokenRequestStatus
	eventually(t, func() (err error) { // roles count a moment later
		got, err = ask(own)
		return err
	})
	if got.TargetSystem == nil || got.TargetSystem.Type != "aws" {
		t.Errorf("the answer has the target system %+v", got.TargetSystem)
	}
	_, c := claims(t, got.Token)
	want := map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "guest", "uid": string(account.UID)}, "cluster": cluster}
	if diff := cmp.Diff(any(want), c["kubernetes.io"]); diff != "" || c["exp"].(float64)-c["iat"].(float64) != 3600 {
		t.Errorf("from %v to %v, kubernetes.io (-want +got):\n%s", c["iat"], c["exp"], diff)
	}
	log, err := os.ReadFile(filepath.Join(p.Dir, "logs", "agent.log"))
	if line := fmt.Sprintf("pod=guest-0 podUID=%s node=%s nodeUID=%s jti=%s", pod.UID, node.Name, node.UID, c["jti"]); err != nil || !strings.Contains(string(log), line) {
		t.Errorf("the log of the agent lacks %q, %v", line, err)
	}
	if strings.Contains(string(log), got.Token) || strings.Contains(string(log), own) {
		t.Error("a token is in the log of the agent")
	}
	if answer := do(t, p.bearer(t, own), "GET", "/api/v1/namespaces/"+namespace, "", ""); answer.Code != http.StatusUnauthorized {
		t.Errorf("the cluster itself takes the token that is the agent's: %d", answer.Code)
	}

	unbound := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.PodSpec{ServiceAccountName: "guest"}}
	for name, test := range map[string]struct{ token, words string }{
		"a token for the API server": {tokenFor(pod), "is not valid for the audience"},
		"no token of the cluster":    {got.Token, "is not valid for the audience"},
		"a token without a pod":      {tokenFor(unbound, v1alpha1.AudienceAgent), "is not bound to a pod"},
		"a pod that is on no node":   {tokenFor(p.podOn(t, namespace, "floating", "guest", ""), v1alpha1.AudienceAgent), "names no node"},
		"an account without use":     {tokenFor(p.podOn(t, namespace, "idle-0", "idle", node.Name), v1alpha1.AudienceAgent), "may not use the WorkloadIdentity"},
	} {
		if got, err := ask(test.token); err == nil || !strings.Contains(err.Error(), test.words) || got.Token != "" {
			t.Errorf("%s: %v, want %q", name, err, test.words)
		}
	}
	// The cluster takes the token of a deleted pod for another minute.
	none := int64(0)
	must(t, p.client(t).CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}))
	eventually(t, func() error {
		if got, err := ask(own); err == nil || got.Token != "" {
			return fmt.Errorf("a pod that is gone gets a token, %v", err)
		}
		return nil
	})
}

// driverWithArguments is a program that runs the driver with the further arguments of a file, which it reads at each start.
func driverWithArguments(t *testing.T) (driver, arguments string) {
	t.Helper()
	folder := t.TempDir()
	driver, arguments = filepath.Join(folder, "credence-node"), filepath.Join(folder, "arguments")
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" $(cat %s)\n", program("credence-node"), arguments)
	must(t, errors.Join(os.WriteFile(driver, []byte(script), 0o700), os.WriteFile(arguments, nil, 0o600)))
	return driver, arguments
}

// volumesByTheAgent has the kubelet bring the driver tokens for the agent's audience, and the driver get tokens of identities of an agent: that of
// a cluster that has joined, as its own identity cluster. The pod waits until the kubelet brings the token, and until the agent answers.
func volumesByTheAgent(t *testing.T, p plane, arguments string) {
	p.install(t, deploy.AgentPods)
	namespace, folder, port := p.namespace(t), t.TempDir(), strconv.Itoa(testkit.FreePort(t))
	p.awsIdentity(t, namespace, "banana", "banana")
	account := p.userOf(t, namespace, "web", "banana")
	cluster := "v-" + namespace
	p.must(t, "", "credence", "cluster", "join", cluster, "--identities", namespace, "--out", folder)
	address := clientcmdapi.NewConfig()
	address.Clusters["agent"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:" + port, CertificateAuthority: p.CAFile}
	address.Contexts["agent"] = &clientcmdapi.Context{Cluster: "agent"}
	address.CurrentContext = "agent"
	kubeconfig := filepath.Join(folder, "driver.kubeconfig")
	must(t, clientcmd.WriteToFile(*address, kubeconfig))
	drive := func(further string) {
		t.Helper()
		must(t, os.WriteFile(arguments, []byte(further), 0o600))
		p.killPart(t, "credence-node")
	}
	bring := func(audience string) {
		t.Helper()
		p.must(t, "", "kubectl", "patch", "csidriver", v1alpha1.CSIDriver, "--type=merge", `-p={"spec":{"tokenRequests":[{"audience":"`+audience+`"}]}}`)
	}
	defer drive("")
	defer bring("")
	drive("--kubeconfig " + kubeconfig + " --audience " + v1alpha1.AudienceAgent)
	p.createPod(t, namespace, identityPod("remote", "banana", 1000, nil))
	p.waitHeldBack(t, namespace, "remote", "the kubelet brings no token of the pod for the audience "+v1alpha1.AudienceAgent)
	bring(v1alpha1.AudienceAgent)
	p.waitHeldBack(t, namespace, "remote", "the API gives none now, and the request is repeated")
	pki := filepath.Join(p.Dir, "pki", "agent")
	start(t, "credence-server", "agent", "--kubeconfig", filepath.Join(pki, "kubeconfig"), "--identity-kubeconfig", filepath.Join(folder, "agent.kubeconfig"),
		"--tls-cert-file", filepath.Join(pki, "tls.crt"), "--tls-private-key-file", filepath.Join(pki, "tls.key"), "--pods-port", port)
	p.waitForLog(t, namespace, "remote", "eyJ")
	// The driver of a plane is not of a DaemonSet.
	if out, _, _ := p.command(t, "", "credence", "doctor"); strings.Count(out, " pods-port ") != 1 || !strings.Contains(out, "skipped  pods-port ") {
		t.Errorf("doctor of a cluster that has the port:\n%s", out)
	}
	_, c := claims(t, strings.Split(p.must(t, "", "kubectl", "-n", namespace, "logs", "remote"), "\n")[3])
	joinedAs, _ := c["gardener.cloud"].(map[string]any)["seed"].(map[string]any)
	want := map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "web", "uid": string(account.UID)}, "cluster": any(joinedAs)}
	if diff := cmp.Diff(any(want), c["kubernetes.io"]); diff != "" || joinedAs["name"] != cluster {
		t.Errorf("the token is of the cluster %v, kubernetes.io (-want +got):\n%s", joinedAs, diff)
	}
	p.must(t, "", "kubectl", "-n", namespace, "delete", "pod", "remote")
}
