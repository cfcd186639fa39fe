package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

func selfTokenPath(namespace, name string) string {
	return identitiesPath(namespace) + "/" + name + "/selftoken"
}

// selfToken requests a token by a token of a pod's own.
func selfToken(t *testing.T, by *rest.Config, namespace, name, spec string) response {
	t.Helper()
	return do(t, by, "POST", selfTokenPath(namespace, name), "application/json", tokenRequest(spec))
}

// wantToken is a token that a request got, or an error. It is for requests right after a change of rights, which counts a moment later.
func wantToken(t *testing.T, by *rest.Config, namespace, name, spec string) (got response) {
	t.Helper()
	eventually(t, func() error {
		if got = selfToken(t, by, namespace, name, spec); got.Code != http.StatusCreated {
			return fmt.Errorf("%d %s", got.Code, got.Body)
		}
		return nil
	})
	return got
}

// bearer is a client that has nothing but a token.
func (p plane) bearer(t *testing.T, token string) *rest.Config {
	t.Helper()
	config := rest.AnonymousClientConfig(p.config(t))
	config.BearerToken = token
	return config
}

// nodeObject makes a node without a kubelet.
func (p plane) nodeObject(t *testing.T) *corev1.Node {
	t.Helper()
	nodes := p.client(t).CoreV1().Nodes()
	node := need(nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		expect(t, nodes.Delete(context.WithoutCancel(t.Context()), node.Name, metav1.DeleteOptions{}), "delete node")
	})
	return node
}

// podOn makes a pod of an account, and puts it on a node if one is named.
func (p plane) podOn(t *testing.T, namespace, name, account, node string) *corev1.Pod {
	t.Helper()
	pods := p.client(t).CoreV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		ServiceAccountName: account, SchedulerName: "none", Containers: []corev1.Container{{Name: "c", Image: "i"}},
		// A node without a kubelet is not ready.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}, metav1.CreateOptions{})
	must(t, err)
	if node != "" {
		must(t, pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{}))
	}
	return pod
}

// podToken is the token that a kubelet gives a pod.
func (p plane) podToken(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	token := need(p.client(t).CoreV1().ServiceAccounts(pod.Namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}},
	}, metav1.CreateOptions{}))(t)
	return token.Status.Token
}

// userOf makes a service account that may use the identities with these names in its namespace.
func (p plane) userOf(t *testing.T, namespace, name string, identities ...string) *corev1.ServiceAccount {
	t.Helper()
	account := need(p.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	if len(identities) > 0 {
		p.grant(t, namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace}, rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"workloadidentities"}, ResourceNames: identities, Verbs: []string{"use"},
		})
	}
	return account
}

// A pod gets a token by its own, with its account, its pod and its node in the claims and in the audit event.
func TestSelfTokens(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	wi := shared.create(t, namespace, "one", "aws", "a")
	account := shared.userOf(t, namespace, "web", "one")
	node := shared.nodeObject(t)
	pod := shared.podOn(t, namespace, "web-0", "web", node.Name)
	by := shared.bearer(t, shared.podToken(t, pod))

	got := wantToken(t, by, namespace, "one", `{}`)
	request := decodeTokenRequest(t, got)
	header, c := claims(t, request.Status.Token)
	want := map[string]any{
		"namespace":      namespace,
		"serviceaccount": map[string]any{"name": "web", "uid": string(account.UID)},
		"pod":            map[string]any{"name": "web-0", "uid": string(pod.UID)},
		"node":           map[string]any{"name": node.Name, "uid": string(node.UID)},
	}
	if diff := gocmp.Diff(want, c["kubernetes.io"]); diff != "" {
		t.Errorf("claim kubernetes.io (-want +got):\n%s", diff)
	}
	if c["sub"] != wi.Status.Sub || c["exp"].(float64)-c["iat"].(float64) != 3600 {
		t.Errorf("sub %v from %v to %v, want %s for an hour", c["sub"], c["iat"], c["exp"], wi.Status.Sub)
	}
	if system := request.Status.TargetSystem; system == nil || system.Type != "aws" {
		t.Errorf("the answer has the target system %+v", system)
	}
	if object := request.Spec.ContextObject; object == nil || object.Name != "web" || object.UID != account.UID {
		t.Errorf("the answer names the context %+v", object)
	}
	if !strings.Contains(strings.Join(got.Header.Values("Cache-Control"), ","), "no-store") {
		t.Errorf("Cache-Control %q", got.Header.Values("Cache-Control"))
	}

	annotations := shared.audited(t, got.Header.Get("Audit-Id")).Annotations
	for key, value := range map[string]string{
		"jti": c["jti"].(string), "kid": header.KeyID, "sub": wi.Status.Sub,
		"context": "v1/ServiceAccount/" + namespace + "/web/" + string(account.UID),
		"pod":     namespace + "/web-0/" + string(pod.UID),
		"node":    node.Name + "/" + string(node.UID),
	} {
		if got := annotations["token.authentication.gardener.cloud/"+key]; got != value {
			t.Errorf("annotation %s of the audit event: %q, want %q", key, got, value)
		}
	}
	searchFor(t, shared.Dir, request.Status.Token)
	if deleted := do(t, shared.config(t), "DELETE", identitiesPath(namespace)+"/one?dryRun=All", "", ""); !strings.Contains(deleted.Header.Get("Warning"), "pods get its tokens without a Secret") {
		t.Errorf("to delete the identity: %d, warning %q", deleted.Code, deleted.Header.Get("Warning"))
	}

}

func TestSelfTokensOfOthers(t *testing.T) {
	inTurn(t)
	selfTokensOfOthers(t, shared)
}

// Each of these callers has a right on the subresource, and gets nothing.
func selfTokensOfOthers(t *testing.T, p plane) {
	namespace, elsewhere := p.namespace(t), p.namespace(t)
	p.create(t, namespace, "one", "aws", "a")
	p.create(t, elsewhere, "theirs", "aws", "a")
	p.userOf(t, namespace, "web", "one")
	p.userOf(t, namespace, "idle")
	p.userOf(t, namespace, "east", "one")
	node := p.nodeObject(t)
	pod := p.podOn(t, namespace, "web-0", "web", node.Name)
	own := p.bearer(t, p.podToken(t, pod))
	wantToken(t, own, namespace, "one", `{}`)

	accounts := p.client(t).CoreV1().ServiceAccounts(namespace)
	unbound := need(accounts.CreateToken(t.Context(), "web", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	secrets := p.client(t).CoreV1().Secrets(namespace)
	must(t, errOf(secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "legacy", Annotations: map[string]string{corev1.ServiceAccountNameKey: "web"}}, Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})))
	var legacy string
	eventually(t, func() error {
		secret, err := secrets.Get(t.Context(), "legacy", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if legacy = string(secret.Data[corev1.ServiceAccountTokenKey]); legacy == "" {
			return errors.New("the Secret has no token yet")
		}
		return nil
	})
	bound := func(name, account, node string) *rest.Config {
		return p.bearer(t, p.podToken(t, p.podOn(t, namespace, name, account, node)))
	}
	p.joinCluster(t, "self-"+namespace, []string{"system:serviceaccount:" + namespace + ":east"}, []string{namespace})
	ofCluster := bound("east-0", "east", node.Name)

	// An admin may impersonate service accounts, and their extras as well.
	forged := func(podName, uid, nodeName string) *rest.Config {
		config := p.as(t, "system:serviceaccount:"+namespace+":web")
		config.Impersonate.Groups = nil
		if podName != "" {
			config.Impersonate.Extra = map[string][]string{
				"authentication.kubernetes.io/pod-name": {podName}, "authentication.kubernetes.io/pod-uid": {uid}, "authentication.kubernetes.io/node-name": {nodeName},
			}
		}
		return config
	}

	// A client that sends the headers by which kube-apiserver names the pod, to kube-apiserver or past it.
	headers := func(config *rest.Config) *rest.Config {
		config.BearerToken = unbound.Status.Token
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return withHeaders{next, map[string]string{
				"X-Remote-User": "system:serviceaccount:" + namespace + ":web",
				"X-Remote-Extra-Authentication.kubernetes.io%2fpod-Name":  "web-0",
				"X-Remote-Extra-Authentication.kubernetes.io%2fpod-Uid":   string(pod.UID),
				"X-Remote-Extra-Authentication.kubernetes.io%2fnode-Name": node.Name,
			}}
		})
		return config
	}
	past := rest.AnonymousClientConfig(p.direct(t))
	past.BearerToken = own.BearerToken

	const unboundText = "is not bound to a pod"
	tests := map[string]struct {
		by              *rest.Config
		namespace, name string
		code            int
		text            string
	}{
		"an admin":                             {p.config(t), "", "", 403, "is not a service account"},
		"a token without a pod":                {p.bearer(t, unbound.Status.Token), "", "", 403, unboundText},
		"a token of a Secret":                  {p.bearer(t, legacy), "", "", 403, unboundText},
		"a pod that is on no node":             {bound("floating", "web", ""), "", "", 403, "names no node"},
		"an account without use":               {bound("idle-0", "idle", node.Name), "", "", 403, "grant it the verb use"},
		"an account without use, of no one":    {bound("idle-1", "idle", node.Name), "", "missing", 403, "grant it the verb use"},
		"an identity of another namespace":     {own, elsewhere, "theirs", 403, "grant it the verb use"},
		"an account of a workload cluster":     {ofCluster, "", "", 403, "is of a WorkloadCluster"},
		"an impersonator":                      {forged("", "", ""), "", "", 403, unboundText},
		"forged: another uid of the pod":       {forged("web-0", "other", node.Name), "", "", 403, "deleted and created again"},
		"forged: another node":                 {forged("web-0", string(pod.UID), "other"), "", "", 403, "and the token names node"},
		"forged: a pod that never was":         {forged("web-1", "other", node.Name), "", "", 403, "does not exist any more"},
		"forged: a pod of another account":     {forged("idle-0", "?", node.Name), "", "", 403, "deleted and created again"},
		"forged: headers":                      {headers(rest.AnonymousClientConfig(p.config(t))), "", "", 403, unboundText},
		"forged: headers, past the cluster":    {headers(rest.AnonymousClientConfig(p.direct(t))), "", "", 403, unboundText},
		"a pod, past the cluster":              {past, "", "", 201, ""},
		"forged: all of it, by an admin":       {forged("web-0", string(pod.UID), node.Name), "", "", 201, ""},
		"without credentials":                  {rest.AnonymousClientConfig(p.config(t)), "", "", 401, ""},
		"itself, which is to show what is not": {own, "", "", 201, ""},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		// Clusters are followed by a watch.
		eventually(t, func() error {
			got := selfToken(t, test.by, cmp.Or(test.namespace, namespace), cmp.Or(test.name, "one"), `{}`)
			if got.Code != test.code || !strings.Contains(string(got.Body), test.text) {
				return fmt.Errorf("%s: %d, want %d with %q: %s", name, got.Code, test.code, test.text, got.Body)
			}
			if got.Code != 201 && strings.Contains(string(got.Body), "eyJ") {
				return fatal{fmt.Errorf("%s: the refusal holds a token", name)}
			}
			return nil
		})
	}

	t.Run("an editor forges a pod", func(t *testing.T) {
		p.userOf(t, namespace, "editor")
		p.bind(t, namespace, "edit", rbacv1.Subject{Kind: "ServiceAccount", Name: "editor", Namespace: namespace})
		token := need(accounts.CreateToken(t.Context(), "editor", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
		// With the cluster's role edit a user may act as each account of the namespace, but not with extras.
		for _, as := range []struct {
			pod, text string
		}{{"", unboundText}, {"web-0", "cannot impersonate resource"}} {
			config := p.bearer(t, token.Status.Token)
			config.Impersonate = forged(as.pod, string(pod.UID), node.Name).Impersonate
			eventually(t, func() error {
				got := selfToken(t, config, namespace, "one", `{}`)
				if got.Code == 201 {
					return fatal{errors.New("an editor has a token of a pod")}
				}
				if got.Code != 403 || !strings.Contains(string(got.Body), as.text) {
					return fmt.Errorf("as pod %q: %d, want 403 with %q: %s", as.pod, got.Code, as.text, got.Body)
				}
				return nil
			})
		}
	})
}

// withHeaders sends further headers.
type withHeaders struct {
	next    http.RoundTripper
	headers map[string]string
}

func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w.headers {
		r.Header[name] = []string{value}
	}
	return w.next.RoundTrip(r)
}

func TestSelfTokensOfATakenNode(t *testing.T) {
	inTurn(t)
	selfTokensOfATakenNode(t, shared)
}

// A node that was taken over has the tokens of its pods, and may request others of them. By these it gets what its pods may use, and no more.
func selfTokensOfATakenNode(t *testing.T, p plane) {
	namespace := p.namespace(t)
	p.create(t, namespace, "one", "aws", "a")
	p.create(t, namespace, "two", "aws", "a")
	p.userOf(t, namespace, "web", "one")
	p.userOf(t, namespace, "store", "two")
	taken, other := p.nodeObject(t), p.nodeObject(t)
	web := p.podOn(t, namespace, "web-0", "web", taken.Name)
	store := p.podOn(t, namespace, "store-0", "store", other.Name)
	there := p.bearer(t, p.podToken(t, store))
	wantToken(t, there, namespace, "two", `{}`)

	// As the kubelet of the node.
	kubelet := p.clientAs(t, "system:node:"+taken.Name, "system:nodes")
	request := func(pod *corev1.Pod, bound bool) (string, error) {
		body := &authenticationv1.TokenRequest{}
		if bound {
			body.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
		}
		token, err := kubelet.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, body, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return token.Status.Token, nil
	}
	var stolen string
	eventually(t, func() (err error) {
		stolen, err = request(web, true)
		return err
	})
	by := p.bearer(t, stolen)
	_, c := claims(t, decodeTokenRequest(t, wantToken(t, by, namespace, "one", `{}`)).Status.Token)
	if node := c["kubernetes.io"].(map[string]any)["node"]; !gocmp.Equal(node, map[string]any{"name": taken.Name, "uid": string(taken.UID)}) {
		t.Errorf("the claim node is %v", node)
	}
	if got := selfToken(t, by, namespace, "two", `{}`); got.Code != 403 || !strings.Contains(string(got.Body), "grant it the verb use") {
		t.Errorf("an identity of a pod of another node: %d %s", got.Code, got.Body)
	}
	if got := selfToken(t, p.as(t, "system:node:"+taken.Name, "system:nodes"), namespace, "one", `{}`); got.Code != 403 {
		t.Errorf("by the node itself: %d %s", got.Code, got.Body)
	}
	if _, err := request(store, true); !apierrors.IsForbidden(err) {
		t.Errorf("a token of a pod of another node: %v", err)
	}
	if _, err := request(web, false); !apierrors.IsForbidden(err) {
		t.Errorf("a token that is bound to no pod: %v", err)
	}

	t.Log("the pod is deleted, and another takes its name")
	pods := p.client(t).CoreV1().Pods(namespace)
	now := int64(0)
	must(t, pods.Delete(t.Context(), web.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	refused := func(text string) {
		t.Helper()
		got := selfToken(t, by, namespace, "one", `{}`)
		if got.Code != 401 && (got.Code != 403 || !strings.Contains(string(got.Body), text)) {
			t.Errorf("%d %s, want 401, or 403 with %q", got.Code, got.Body, text)
		}
	}
	refused("does not exist any more")
	again := p.podOn(t, namespace, "web-0", "web", taken.Name)
	refused("deleted and created again")
	wantToken(t, p.bearer(t, p.podToken(t, again)), namespace, "one", `{}`)
	refused("deleted and created again")

	t.Log("the right is taken away")
	must(t, p.client(t).RbacV1().RoleBindings(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	// Answers of reviews are kept for ten seconds.
	eventually(t, func() error {
		if got := selfToken(t, there, namespace, "two", `{}`); got.Code != 403 {
			return fmt.Errorf("%d, want 403", got.Code)
		}
		return nil
	})
}
