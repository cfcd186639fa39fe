package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/authority/authoritytest"
	"github.com/credence-id/credence/internal/tokensecret"
)

// The rule of use is written in Go and in CEL. Each case of the table is decided by the admission policies, and as the agent, the webhook and the
// commands review it: both by the authorizer of the cluster.
func TestTheRuleOfUse(t *testing.T) {
	inTurn(t)
	namespace, other := shared.namespace(t), shared.namespace(t)
	client := shared.client(t)
	reviews := authority.Cluster(client.AuthorizationV1().SubjectAccessReviews())
	writers := namespace + "-writers" // a group that may write Secrets
	shared.bind(t, namespace, "edit", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: writers})
	shared.must(t, "", "kubectl", "label", "namespace", namespace, useLabel+"=enforce")
	cases := authoritytest.Cases(namespace, other, namespace+"-")
	for _, c := range cases {
		for _, g := range c.Grants {
			shared.grant(t, g.Namespace, g.To, g.Rule)
		}
		account := c.Account
		switch c.Object.Kind {
		case authority.GMSACredentialSpecs:
			shared.createSpec(t, c.Object.Name)
		case authority.ServiceAccounts:
			account = c.Object.Name
		}
		if account == "" {
			continue
		}
		need(client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}))(t)
	}
	// policy has the policies decide, and returns the subject that is reviewed later.
	policy := func(c authoritytest.Case) (authority.Subject, error) {
		if c.Account != "" {
			pod := windowsPod(gmsaOf(c.Object.Name, credentialContents))
			pod.Spec.ServiceAccountName = c.Account
			_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, dryRun)
			return c.Subject, err
		}
		as := shared.clientAs(t, c.Subject.Name, c.Subject.Groups[0], writers)
		if c.Object.Kind == authority.ServiceAccounts {
			_, err := as.CoreV1().Pods(namespace).Create(t.Context(), podOf(c.Object.Name), dryRun)
			return c.Subject, err
		}
		secret := tokenSecret(c.Name, namespace, c.Object.Name)
		if c.Object.Kind == authority.CredentialsBindings {
			delete(secret.Annotations, v1alpha1.AnnotationName)
			secret.Annotations[v1alpha1.AnnotationBinding] = c.Object.Name
		}
		created, err := as.CoreV1().Secrets(namespace).Create(t.Context(), secret, dryRun)
		if err != nil {
			return c.Subject, err
		}
		recorded, _ := tokensecret.RequestedBy(created)
		return recorded, nil
	}
	eventually(t, func() error { // until the authorizer knows all grants; that of a case is known before those of later ones
		for _, c := range cases {
			_, err := policy(c)
			if c.Allowed && err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			if c.Object.Kind == authority.ServiceAccounts && len(c.Grants) == 0 && err == nil {
				return errors.New("the policies do not know the label of the namespace yet")
			}
		}
		return nil
	})
	for _, c := range cases {
		subject, err := policy(c)
		if (err == nil) != c.Allowed {
			t.Errorf("%s: the policies answer %v, want allowed=%v", c.Name, err, c.Allowed)
		} else if err != nil && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("%s: refused by something else than a policy: %v", c.Name, err)
		}
		if subject.Name != c.Subject.Name {
			t.Errorf("%s: recorded user %q, want %q", c.Name, subject.Name, c.Subject.Name)
		}
		q := c.Question()
		q.Subject = subject
		if answer, err := authority.Ask(t.Context(), reviews, q); err != nil || answer.Allowed != c.Allowed {
			t.Errorf("%s: %s: %+v, %v; want allowed=%v", c.Name, q, answer, err, c.Allowed)
		}
	}
}
