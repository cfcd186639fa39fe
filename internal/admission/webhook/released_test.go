package webhook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

// carrying is a pod of the account picker with the volumes of identities.
func carrying(identities ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "orchard"}, Spec: corev1.PodSpec{ServiceAccountName: "picker"}}
	for _, identity := range identities {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: pods.VolumeName(identity), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: tokensecret.NameFor("picker", identity)}}}}}}})
	}
	return pod
}

func annotatedAccount(t *testing.T, annotation string) string {
	t.Helper()
	object := testkit.Need(json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "picker", Namespace: "orchard", Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: annotation}}}))(t)
	return string(object)
}

func TestPodsOfReleasedIdentitiesAreCounted(t *testing.T) {
	c := newCluster()
	c.pods = []corev1.Pod{carrying("banana"), carrying("banana", "cherry"), carrying("banana"), carrying()}
	other := carrying("banana")
	other.Spec.ServiceAccountName = "other"
	c.pods = append(c.pods, other)
	const three, one = "3 pods of service account picker still use WorkloadIdentity banana", "1 pod of service account picker still uses WorkloadIdentity cherry"
	for _, test := range []struct {
		before, after string
		want          []string
	}{
		{"banana,cherry", "", []string{three, one}},
		{"banana, cherry", "cherry", []string{three}},
		{"banana", "cherry", []string{three}},
		{"banana,cherry", "cherry, banana", nil},
		{"date", "", nil},
		{"banana", "banana,,", nil}, // refused at pods; nothing is released
		{"banana,,", "", nil},
	} {
		review := sent{resource: "serviceaccounts", operation: admissionv1.Update, old: annotatedAccount(t, test.before), object: annotatedAccount(t, test.after)}
		response := ask(t, c.handler(), webhook.ServiceAccountsPath, review)
		if !response.Allowed || !slices.Equal(response.Warnings, test.want) {
			t.Errorf("from %q to %q: %t with warnings %q, want %q", test.before, test.after, response.Allowed, response.Warnings, test.want)
		}
	}

	release := sent{resource: "serviceaccounts", operation: admissionv1.Update, old: annotatedAccount(t, "cherry"), object: annotatedAccount(t, "")}
	for range 600 {
		c.pods = append(c.pods, carrying("cherry"))
	}
	counted := fmt.Sprintf("at least %d pods of service account picker still use WorkloadIdentity cherry", 1+500-4)
	if response := ask(t, c.handler(), webhook.ServiceAccountsPath, release); !slices.Equal(response.Warnings, []string{counted}) {
		t.Errorf("more pods than are looked at: %q, want %q", response.Warnings, counted)
	}
	c.outages["pods"] = errors.New("connection refused")
	if response := ask(t, c.handler(), webhook.ServiceAccountsPath, release); !response.Allowed || response.Warnings != nil {
		t.Errorf("pods that can't be listed: %+v", response)
	}
}
