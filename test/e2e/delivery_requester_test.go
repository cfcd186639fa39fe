package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// A Secret is filled on behalf of the user or service account that labelled it. Once the user may not use the identity any more, no token is written,
// until another user takes it over.
func TestUseTakenFromTheRequester(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.enable(t, namespace)
	shared.awsIdentity(t, namespace, "banana", "dev")
	shared.letAgent(t, namespace)
	// A service account of a controller labels a Secret, with the extra values of its token.
	for _, role := range []string{"admin", "credence:workloadidentities:user"} {
		shared.bind(t, namespace, role, rbacv1.Subject{Kind: "ServiceAccount", Name: "gitops", Namespace: namespace})
	}
	shared.userOf(t, namespace, "gitops")
	bound := need(shared.client(t).CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "gitops", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	gitops := need(kubernetes.NewForConfig(shared.bearer(t, bound.Status.Token)))(t)
	eventually(t, func() error {
		_, err := gitops.CoreV1().Secrets(namespace).Create(t.Context(), tokenSecret("gitops", namespace, "banana"), metav1.CreateOptions{})
		return err
	})
	of, _ := shared.awaitToken(t, namespace, "gitops", nil)
	if user, _ := tokensecret.RequestedBy(of); user.Name != "system:serviceaccount:"+namespace+":gitops" || user.UID == "" || len(user.Extra) == 0 {
		t.Errorf("the Secret is filled on behalf of %+v, want the service account with its extra values", user)
	}

	shared.admin(t, namespace, "jane")
	bob := shared.admin(t, namespace, "bob").CoreV1().Secrets(namespace)
	shared.letUse(t, namespace, "jane")
	config := rest.CopyConfig(shared.as(t, "jane", "fruit"))
	config.Impersonate.Extra = map[string][]string{"example.com/scopes": {"read", "write"}, "example.com/team": {"orchard"}}
	client := need(kubernetes.NewForConfig(config))(t)
	jane := client.CoreV1().Secrets(namespace)
	forged := tokenSecret("s", namespace, "banana")
	forged.Annotations[v1alpha1.AnnotationRequester], forged.Annotations[v1alpha1.AnnotationRequesterGroups] = "system:admin", "system:masters"
	eventually(t, func() error { _, err := jane.Create(t.Context(), forged, metav1.CreateOptions{}); return err })
	got, first := shared.awaitToken(t, namespace, "s", nil)
	user, _ := tokensecret.RequestedBy(got)
	if user.Name != "jane" || strings.Join(user.Groups, " ") != "fruit system:authenticated" || len(user.Extra) != 2 || len(user.Extra["example.com/scopes"]) != 2 {
		t.Errorf("the Secret is filled on behalf of %+v, want jane", user)
	}

	// A user who may not use the identity changes other things of the Secret, and leaves the recorded user as it was.
	secrets := shared.client(t).CoreV1().Secrets(namespace)
	for what, content := range map[string]string{
		"a note":             string(annotate("note", "x")),
		"jane's groups":      string(annotate(v1alpha1.AnnotationRequesterGroups, "system:masters")),
		"no user":            `{"metadata":{"annotations":{"` + v1alpha1.AnnotationRequester + `":null}}}`,
		"no user and groups": `{"metadata":{"annotations":{"` + v1alpha1.AnnotationRequester + `":null,"` + v1alpha1.AnnotationRequesterGroups + `":null}}}`,
	} {
		allowed(t, what, patch(t, bob, "s", content))
		now, err := secrets.Get(t.Context(), "s", metav1.GetOptions{})
		if kept, _ := tokensecret.RequestedBy(now); err != nil || fmt.Sprint(kept) != fmt.Sprint(user) {
			t.Errorf("%s: the Secret is filled on behalf of %+v, %v", what, kept, err)
		}
	}
	takeOver := string(annotate(v1alpha1.AnnotationRequester, "me"))
	refused(t, "taking it over without the right", patch(t, bob, "s", takeOver), "bob may not have tokens")

	// The right goes; renewals end.
	must(t, shared.client(t).RbacV1().RoleBindings(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	shared.letAgent(t, namespace)
	shared.renewalIsDenied(t, namespace, "s", "jane")
	_, last := shared.awaitToken(t, namespace, "s", nil)
	if out := shared.must(t, "", "kubectl", "credence", "get", "-n", namespace, "-o", "wide"); !strings.Contains(out, "REQUESTED BY") || !strings.Contains(out, "jane") || !strings.Contains(out, "UseDenied") {
		t.Errorf("credence get shows\n%s", out)
	}

	// Bob gets it, and takes the Secret over.
	shared.bind(t, namespace, "admin", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "bob"})
	shared.letUse(t, namespace, "bob")
	eventually(t, func() error { return patch(t, bob, "s", takeOver) })
	got, now := shared.awaitToken(t, namespace, "s", func(c carried) bool { return c.ID != last.ID })
	if user, _ := tokensecret.RequestedBy(got); user.Name != "bob" {
		t.Errorf("the Secret is filled on behalf of %+v, want bob", user)
	}
	if first.ID == now.ID {
		t.Error("the first token is there again")
	}
}

// renewalIsDenied requests new tokens until an Event reports that the user on whose behalf a Secret is filled may not use the identity any more.
func (p plane) renewalIsDenied(t *testing.T, namespace, secret, user string) {
	t.Helper()
	eventually(t, func() error {
		must(t, patch(t, p.client(t).CoreV1().Secrets(namespace), secret, string(annotate(v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken))))
		warnings := p.warnings(t, namespace)
		if !slices.ContainsFunc(warnings, func(w string) bool {
			return strings.Contains(w, "Secret/"+secret+" UseDenied: "+user+", on whose behalf")
		}) {
			return fmt.Errorf("no Event of the missing right of %s: %q", user, warnings)
		}
		return nil
	})
}

// Whatever webhooks make of a Secret, it is filled on behalf of the user who labels it alone.
func TestARequesterThatAWebhookForges(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	root := shared.client(t)
	forge := func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var secret corev1.Secret
		if err := json.Unmarshal(review.Request.Object.Raw, &secret); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
			Patch: []byte(fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations/%s","value":%q}]`, strings.ReplaceAll(secret.Annotations["forge"], "/", "~1"), secret.Annotations["as"])),
		}
		_ = json.NewEncoder(w).Encode(review)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(forge))
	defer server.Close()
	shared.mutatingWebhook(t, namespace, server, "secrets")
	create := func(annotation, value string) error {
		secret := tokenSecret("s", namespace, "banana")
		secret.Annotations["forge"], secret.Annotations["as"] = annotation, value
		_, err := root.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, func() error {
		if err := create(v1alpha1.AnnotationRequester, "eve"); err == nil {
			return fmt.Errorf("a Secret on behalf of eve was admitted")
		}
		return nil
	})
	const words = "must hold the user who makes the request"
	for annotation, value := range map[string]string{
		v1alpha1.AnnotationRequester: "eve", v1alpha1.AnnotationRequesterUID: "1", v1alpha1.AnnotationRequesterGroups: "fruit", v1alpha1.AnnotationRequesterExtra: "a=b",
	} {
		refused(t, "another "+annotation, create(annotation, value), words)
	}
	refused(t, "no user", create(v1alpha1.AnnotationRequester, ""), words)
	allowed(t, "another annotation", create("note", "x"))

	forged := map[string]string{"forge": "note", "as": "x"}
	labelled := tokenSecret("labelled", namespace, "banana")
	maps.Copy(labelled.Annotations, forged)
	for _, secret := range []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "plain", Annotations: forged}}, labelled} {
		must(t, errOf(root.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})))
	}
	update := func(name string, change func(*corev1.Secret)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			secret, err := root.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(secret)
			_, err = root.CoreV1().Secrets(namespace).Update(t.Context(), secret, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	eve := func(secret *corev1.Secret) {
		secret.Annotations["forge"], secret.Annotations["as"] = v1alpha1.AnnotationRequester, "eve"
	}
	refused(t, "a Secret that gets its label later", update("plain", func(secret *corev1.Secret) {
		secret.Labels = labelled.Labels
		maps.Copy(secret.Annotations, labelled.Annotations)
		eve(secret)
	}), words)
	refused(t, "a labelled Secret that is changed otherwise", update("labelled", eve), words)
	allowed(t, "a change that forges nothing", update("labelled", func(secret *corev1.Secret) { secret.Annotations["as"] = "y" }))
}

// mutatingWebhook has a server change objects of a namespace, after all other webhooks.
func (p plane) mutatingWebhook(t *testing.T, namespace string, server *httptest.Server, resource string) {
	t.Helper()
	p.applied(t, fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"zzz-e2e-%[1]s"},"webhooks":[{"name":"e2e.example.com",
		"clientConfig":{"url":%[2]q,"caBundle":%[3]q},"rules":[{"operations":["CREATE","UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":[%[4]q]}],
		"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%[1]q}},"sideEffects":"None","reinvocationPolicy":"IfNeeded","admissionReviewVersions":["v1"]}]}`,
		namespace, server.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), resource))
}
