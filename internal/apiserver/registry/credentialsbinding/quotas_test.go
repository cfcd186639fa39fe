package credentialsbinding

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// quotas are Quotas by name, each with the kind of its scope.
type quotas map[string]v1alpha1.QuotaScope

func (q quotas) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if scope, ok := q[request.NamespaceValue(ctx)+"/"+name]; ok {
		return &v1alpha1.Quota{Spec: v1alpha1.QuotaSpec{Scope: scope}}, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("quotas"), name)
}

// namespaces are those with the label, or why they are not known.
type namespaces struct {
	label string
	err   error
}

func (n namespaces) Get(name string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelNamespaceQuotas: n.label}}}, n.err
}

func TestQuotasOfABinding(t *testing.T) {
	project, secret := v1alpha1.QuotaScope{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"}, v1alpha1.QuotaScope{APIVersion: "v1", Kind: "Secret"}
	there := quotas{"shop/projects": project, "shop/all": secret, "shop/all-too": {APIVersion: "authentication.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity"}, "limits/all": secret}
	enforced := namespaces{label: v1alpha1.NamespaceEnabled}
	for name, test := range map[string]struct {
		quotas []*v1alpha1.CredentialsReference
		in     namespaces
		code   int32
		want   string
	}{
		"none":                             {nil, namespaces{}, 0, ""},
		"one of each scope":                {[]*v1alpha1.CredentialsReference{ref("projects"), ref("all")}, enforced, 0, ""},
		"of another namespace":             {[]*v1alpha1.CredentialsReference{{Name: "all", Namespace: "limits"}}, enforced, 0, ""},
		"two of one scope":                 {[]*v1alpha1.CredentialsReference{ref("all-too"), ref("all")}, enforced, 422, "only one Quota of each scope (projects or credentials) can be listed, and shop/all-too has the same"},
		"one that does not exist":          {[]*v1alpha1.CredentialsReference{ref("gone")}, enforced, 0, ""},
		"one that may not be read":         {[]*v1alpha1.CredentialsReference{ref("all"), ref("secret")}, enforced, 403, `quotas[1]: user "jane" cannot get resource "quotas" in API group "authentication.gardener.cloud" in the namespace "shop"`},
		"in a namespace without the label": {[]*v1alpha1.CredentialsReference{ref("all")}, namespaces{}, 422, "are not enforced in namespace shop: a cluster admin enforces them with: kubectl label namespace shop identity.credence.dev/quotas=enabled"},
		"in an unknown namespace":          {[]*v1alpha1.CredentialsReference{ref("all")}, namespaces{err: errors.New("away")}, 503, "away"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{rights: []string{"get shop/projects", "get shop/all", "get shop/all-too", "get shop/gone", "get limits/all"}}
			made := binding(ref("a"), nil)
			listing(test.quotas...)(made)
			err := limits{there, test.in, w}.check(request.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"}), made)
			if test.code == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			status := apierrors.APIStatus(nil)
			if !errors.As(err, &status) || status.Status().Code != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %d %s", err, test.code, test.want)
			}
		})
	}
}
