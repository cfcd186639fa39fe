package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/tokensecret"
)

// With the webhook configurations gone, as half an uninstall leaves them, a policy keeps pods from the token Secrets of other accounts.
func TestPlaneTokensOfOtherAccountsWithoutTheWebhook(t *testing.T) {
	p := alone(t)
	namespace := p.accountWithIdentities(t, "banana")
	core := p.client(t).CoreV1()
	create := func(pod *corev1.Pod) error { return errOf(core.Pods(namespace).Create(t.Context(), pod, dryRun)) }
	running := need(core.Pods(namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{}))(t)
	p.withoutConfigurations(t, "mutatingwebhookconfiguration/credence-webhook", "validatingwebhookconfiguration/credence-finished-pods")
	stolen := tokensecret.NameFor("web", "banana")
	for what, steal := range waysTo(stolen) {
		pod, own := podOf("default"), podOf("web")
		steal(&pod.Spec)
		steal(&own.Spec)
		eventually(t, func() error { // the API server learns by a watch that the webhooks are gone
			if err := create(own); err != nil {
				return fmt.Errorf("the account's own token as %s: %w", what, err)
			}
			return nil
		})
		refused(t, "another account's token as "+what, create(pod), "carries tokens of another service account", "credence-token-secrets-of-pods")
	}
	debug := func(name string) error {
		container := fmt.Sprintf(`{"spec":{"ephemeralContainers":[{"name":"d","image":"d","env":[{"name":"T","valueFrom":{"secretKeyRef":{"name":%q,"key":"token"}}}]}]}}`, name)
		return errOf(core.Pods(namespace).Patch(t.Context(), running.Name, "application/strategic-merge-patch+json", []byte(container), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "ephemeralcontainers"))
	}
	refused(t, "another account's token in an ephemeral container", debug(tokensecret.NameFor("default", "banana")), "credence-token-secrets-of-pods")
	expect(t, debug(stolen), "its own")
}

// withoutConfigurations deletes objects until the end of a test.
func (p plane) withoutConfigurations(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		var object map[string]any
		must(t, json.Unmarshal([]byte(p.must(t, "", "kubectl", "get", name, "-o", "json")), &object))
		metadata := object["metadata"].(map[string]any)
		for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"} {
			delete(metadata, field)
		}
		text := string(need(json.Marshal(object))(t))
		p.must(t, "", "kubectl", "delete", name)
		t.Cleanup(func() {
			if _, stderr, code := p.command(t, text, "kubectl", "create", "-f", "-"); code != 0 && !strings.Contains(stderr, "AlreadyExists") {
				t.Error(errors.New(stderr))
			}
		})
	}
}
