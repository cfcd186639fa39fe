package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// Labels and annotations that have no effect are refused, or warned about by name.
func TestAnnotationsWithoutEffect(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	client, warnings := shared.warnedClient(t, shared.config(t))
	namespaces, accounts := client.CoreV1().Namespaces(), client.CoreV1().ServiceAccounts(namespace)
	label := func(value string) error {
		return errOf(namespaces.Patch(t.Context(), namespace, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelNamespaceIdentities+`":`+value+`}}}`), metav1.PatchOptions{}))
	}
	for _, value := range []string{`"true"`, `"Enabled"`, `""`} {
		refused(t, "the label with "+value, label(value), "with the value enabled alone")
	}
	refused(t, "a namespace that is created with another value", errOf(namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{v1alpha1.LabelNamespaceIdentities: "yes"}}}, metav1.CreateOptions{})), "with the value enabled alone")
	allowed(t, "the label", label(`"enabled"`))
	if got := warnings.take(); got != "" {
		t.Errorf("the label is warned about: %s", got)
	}
	allowed(t, "no label", label("null"))
	allowed(t, "the label again", label(`"enabled"`))

	for name, c := range map[string]struct{ labels, annotations, warning string }{
		"list":            {"", v1alpha1.AnnotationAccountIdentities + "=banana, cherry.example , d-1", ""},
		"empty":           {"", v1alpha1.AnnotationAccountIdentities + "= ", ""},
		"others":          {"app=credence", "example.com/identity=x", ""},
		"of images":       {"", v1alpha1.AnnotationImagePullIdentity + "=banana", ""},
		"of an image":     {"", "identity.credence.dev/image-identity=banana", "annotation identity.credence.dev/image-identity has no effect"},
		"two commas":      {"", v1alpha1.AnnotationAccountIdentities + "=banana,,cherry", "pods of this service account will be refused"},
		"no name":         {"", v1alpha1.AnnotationAccountIdentities + "=Banana", "pods of this service account will be refused"},
		"a name at times": {"", v1alpha1.AnnotationAccountIdentities + "=a,b,a ", "pods of this service account will be refused"},
		"too many":        {"", v1alpha1.AnnotationAccountIdentities + "=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "pods of this service account will be refused"},
		"too long":        {"", v1alpha1.AnnotationAccountIdentities + "=" + strings.Repeat("a", 254), "pods of this service account will be refused"},
		"misspelt":        {"", "identity.credence.dev/workload-identites=banana", "annotation identity.credence.dev/workload-identites has no effect"},
		"one identity":    {"", "identity.credence.dev/workload-identity=banana", "annotation identity.credence.dev/workload-identity has no effect"},
		"another domain":  {"", "credence.io/workload-identities=banana", "annotation credence.io/workload-identities has no effect"},
		"a label":         {v1alpha1.AnnotationAccountIdentities + "=banana", "", "label " + v1alpha1.AnnotationAccountIdentities + " has no effect"},
	} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-", Labels: pairs(c.labels), Annotations: pairs(c.annotations)}}
		eventually(t, func() error { // until the label of the namespace is known to the policies
			warnings.take()
			return errOf(accounts.Create(t.Context(), account, metav1.CreateOptions{}))
		})
		if got := warnings.take(); (got != "") != (c.warning != "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: warned %q, want %q", name, got, c.warning)
		}
	}
	need(namespaces.Patch(t.Context(), namespace, types.MergePatchType, annotate(v1alpha1.LabelNamespaceIdentities, "enabled"), metav1.PatchOptions{}))(t)
	if got := warnings.take(); !strings.Contains(got, "annotation "+v1alpha1.LabelNamespaceIdentities+" has no effect") {
		t.Errorf("the label as an annotation: warned %q", got)
	}
	stdout, _, code := shared.command(t, "", "credence", "doctor", "-n", namespace)
	for _, word := range []string{"fail     annotations", "can't be understood", "warn     annotations", "the kubeconfig has\n"} {
		if code != 1 || !strings.Contains(stdout, word) {
			t.Errorf("doctor: exit code %d, want 1 with %q:\n%s", code, word, stdout)
		}
	}
}

func pairs(text string) map[string]string {
	key, value, found := strings.Cut(text, "=")
	if !found {
		return nil
	}
	return map[string]string{key: value}
}
