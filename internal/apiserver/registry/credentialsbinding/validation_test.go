package credentialsbinding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

func ref(name string) *v1alpha1.CredentialsReference {
	return &v1alpha1.CredentialsReference{Name: name}
}

func binding(secret, identity *v1alpha1.CredentialsReference) *v1alpha1.CredentialsBinding {
	b := &v1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "my-credentials"},
		Provider:   v1alpha1.CredentialsProvider{Type: "aws"}, SecretRef: secret, WorkloadIdentityRef: identity,
	}
	complete(b)
	return b
}

func TestValidate(t *testing.T) {
	longest := strings.Repeat("a", 253)
	for name, test := range map[string]struct {
		binding *v1alpha1.CredentialsBinding
		change  func(*v1alpha1.CredentialsBinding)
		want    []string
	}{
		"a Secret":                   {binding: binding(ref("static"), nil)},
		"an identity":                {binding: binding(nil, ref("banana-testing"))},
		"of another namespace":       {binding: binding(nil, &v1alpha1.CredentialsReference{Name: "a.b", Namespace: "elsewhere"})},
		"the longest names":          {binding: binding(ref(longest), nil), change: func(b *v1alpha1.CredentialsBinding) { b.Name = longest }},
		"named as its Secret":        {binding: binding(ref("my-credentials"), nil)},
		"a name too long":            {binding: binding(ref(longest+"a"), nil), want: []string{"secretRef.name: must be no more than 253"}},
		"both":                       {binding: binding(ref("static"), ref("banana-testing")), want: []string{"workloadIdentityRef: must not be set beside secretRef"}},
		"none":                       {binding: binding(nil, nil), want: []string{"workloadIdentityRef: set workloadIdentityRef, or secretRef"}},
		"no name":                    {binding: binding(nil, ref("")), want: []string{"workloadIdentityRef.name: "}},
		"not a name":                 {binding: binding(nil, ref("a/b")), want: []string{"workloadIdentityRef.name: a lowercase RFC 1123 subdomain"}},
		"not a namespace":            {binding: binding(&v1alpha1.CredentialsReference{Name: "a", Namespace: "a.b"}, nil), want: []string{"secretRef.namespace: must not contain dots"}},
		"no provider":                {binding: binding(ref("a"), nil), change: func(b *v1alpha1.CredentialsBinding) { b.Provider.Type = "" }, want: []string{"provider.type: name the kind of provider"}},
		"two providers":              {binding: binding(ref("a"), nil), change: func(b *v1alpha1.CredentialsBinding) { b.Provider.Type = "aws,gcp" }, want: []string{"provider.type: a lowercase RFC 1123 label"}},
		"the quotas of the document": {binding: binding(ref("a"), nil), change: func(b *v1alpha1.CredentialsBinding) { b.Quotas = []v1alpha1.CredentialsReference{} }},
		"a quota of each scope":      {binding: binding(ref("a"), nil), change: listing(ref("one"), ref("two"))},
		"quotas without end":         {binding: binding(ref("a"), nil), change: func(b *v1alpha1.CredentialsBinding) { b.Quotas = make([]v1alpha1.CredentialsReference, 1000) }, want: []string{"quotas: must have at most 2"}},
		"a quota without a name":     {binding: binding(ref("a"), nil), change: listing(ref("")), want: []string{"quotas[0].name: must provide a name"}},
		"an invalid name of a quota": {binding: binding(ref("a"), nil), change: listing(ref("a/b")), want: []string{"quotas[0].name: a lowercase RFC 1123 subdomain"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.binding)
			}
			var got []string
			for i, err := range validate(test.binding) {
				line := err.Field + ": " + err.Detail
				if i < len(test.want) && strings.HasPrefix(line, test.want[i]) {
					line = test.want[i]
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// listing lists Quotas, of the namespace of the binding where they name none.
func listing(quotas ...*v1alpha1.CredentialsReference) func(*v1alpha1.CredentialsBinding) {
	return func(b *v1alpha1.CredentialsBinding) {
		for _, each := range quotas {
			b.Quotas = append(b.Quotas, *each)
		}
		complete(b)
	}
}

func TestQuotasAreImmutable(t *testing.T) {
	old, changed := binding(ref("a"), nil), binding(ref("b"), nil)
	old.Quotas = []v1alpha1.CredentialsReference{}
	if errs := validateUpdate(changed, old); len(errs) > 0 {
		t.Errorf("an empty list in place of none: %v", errs)
	}
	listing(ref("one"))(old)
	if errs := validateUpdate(changed, old); len(errs) != 1 || errs[0].Field != "quotas" {
		t.Errorf("errors %v", errs)
	}
}

func TestProviderIsImmutable(t *testing.T) {
	old, changed := binding(ref("a"), nil), binding(ref("b"), nil)
	changed.Provider.Type = "gcp"
	if errs := validateUpdate(changed, old); len(errs) != 1 || errs[0].Field != "provider.type" {
		t.Errorf("errors %v", errs)
	}
}
