package secrets_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/tokensecret"
)

func TestNoAccountContextForAnotherCluster(t *testing.T) {
	w := deliverytest.New(t, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.Secrets.NamesAccounts = false
	w.LookAtAccount("ns/web")
	w.Look("ns/" + tokensecret.NameFor("web", "banana"))
	if len(w.Tokens) != 1 || w.Tokens[0].Context != nil {
		t.Errorf("requested %+v, want a token without context", w.Tokens)
	}
}

// A Secret that names a service account as its context gets tokens only as the one that the agent keeps for this account.
func TestForgedSecretsGetNoToken(t *testing.T) {
	real := accounts.NewSecret(&metav1.PartialObjectMetadata{ObjectMeta: deliverytest.Account("ns", "web", "banana").ObjectMeta}, &v1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "banana"}, Spec: v1alpha1.WorkloadIdentitySpec{TargetSystem: v1alpha1.TargetSystem{Type: "aws"}}})
	for name, test := range map[string]struct {
		forge func(*corev1.Secret)
		event string
	}{
		"another name":      {func(s *corev1.Secret) { s.Name = "mine" }, "it is not the Secret that is kept for that"},
		"no owner":          {func(s *corev1.Secret) { s.OwnerReferences = nil }, "its owner is not the service account"},
		"owner of before":   {func(s *corev1.Secret) { s.OwnerReferences[0].UID = "uid-before" }, "its owner is not the service account"},
		"another namespace": {func(s *corev1.Secret) { s.Namespace = "evil" }, "tokens of an account are kept in its own namespace"},
		"identity of another namespace": {func(s *corev1.Secret) {
			s.Annotations[v1alpha1.AnnotationNamespace] = "other"
		}, "service accounts get identities of their own namespace"},
		"account that does not name it": {func(s *corev1.Secret) {
			s.Name, s.Annotations[v1alpha1.AnnotationName] = tokensecret.NameFor("web", "cherry"), "cherry"
		}, "cherry"},
		"account that was created anew": {func(s *corev1.Secret) {
			s.OwnerReferences[0].UID = "uid-old"
			s.Annotations[v1alpha1.AnnotationContextObject] = strings.ReplaceAll(s.Annotations[v1alpha1.AnnotationContextObject], "uid-web", "uid-old")
		}, "with the uid uid-old does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			forged := real.DeepCopy()
			test.forge(forged)
			w := deliverytest.New(t, forged, deliverytest.EnabledNamespace("ns"), deliverytest.EnabledNamespace("evil"), deliverytest.Account("ns", "web", "banana"))
			for _, identity := range [][2]string{{"ns", "banana"}, {"ns", "cherry"}, {"other", "banana"}} {
				w.AddIdentity(identity[0], identity[1], "u-"+identity[0]+identity[1])
			}
			w.Look(forged.Namespace + "/" + forged.Name)
			if len(w.Tokens) != 0 {
				t.Errorf("requested %+v", w.Tokens)
			}
			if event := w.Event(); !strings.Contains(event, "SecretNotOwned") || !strings.Contains(event, test.event) {
				t.Errorf("the Event is %q", event)
			}
		})
	}
	w := deliverytest.New(t, real, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.Look("ns/" + real.Name)
	if len(w.Tokens) != 1 {
		t.Error("the real one gets none either")
	}
}

func TestNoTokenAfterUseIsWithdrawn(t *testing.T) {
	w := deliverytest.New(t, deliverytest.EnabledNamespace("ns"), deliverytest.Account("ns", "web", "banana"))
	w.AddIdentity("ns", "banana", "u1")
	w.LookAtAccount("ns/web")
	key := "ns/" + tokensecret.NameFor("web", "banana")
	w.Look(key)
	w.Denied["system:serviceaccount:ns:web"] = true
	w.Pass(45 * time.Minute)
	w.Look(key)
	if len(w.Tokens) != 1 || secrets.Stored(w.Secret(key)) == nil {
		t.Errorf("%d tokens were requested, want no second", len(w.Tokens))
	}
	// On the account and on the Secret.
	for range 2 {
		if event := w.Event(); !strings.Contains(event, "UseDenied") {
			t.Errorf("the Event is %q", event)
		}
	}
}
