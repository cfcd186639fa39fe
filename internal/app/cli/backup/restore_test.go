package backup

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/backup"
	"github.com/credence-id/credence/test/testkit"
)

// Before an identity is created, its user sees where its tokens will go: a file can have another host than the cluster had.
func TestRestoreShowsWhereTokensGo(t *testing.T) {
	var plan backup.Plan
	for _, system := range []struct{ kind, config string }{
		{"aws", `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:minio:iam:::role/cart","region":"us-east-1","endpoint":"https://attacker.example.com"}`},
		{"aws", `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/cart"}`},
		{"aws", `{"endpoint":"https://attacker.example.com"}`},
		{"azure", `{"apiVersion":"azure.authentication.gardener.cloud/v1alpha1","kind":"Config","clientID":"1f2e3d4c-5b6a-4798-8897-a6b5c4d3e2f1","tenantID":"00000000-0000-4000-8000-000000000000"}`},
		{"other", "{\"url\":\"\u202ehttps://other.example.com\"}"},
		{"generic", ""},
	} {
		wi := v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Status: v1alpha1.WorkloadIdentityStatus{Sub: "subject"}}
		wi.Spec.Audiences, wi.Spec.TargetSystem.Type = []string{"a", "b\n+ shop/pay"}, system.kind
		if system.config != "" {
			wi.Spec.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: []byte(system.config)}
		}
		plan.Create = append(plan.Create, wi)
	}
	var out bytes.Buffer
	r := restore{Terminal: &screen.Terminal{Out: &out}}
	testkit.Must(t, r.print(&backup.Backup{Issuer: "https://issuer.example.com", CreatedAt: time.Unix(0, 0).UTC()}, plan, nil))
	if diff := cmp.Diff(`Backup of 1970-01-01 00:00:00 UTC, issuer https://issuer.example.com
+ shop/cart: subject
    aws for a, b\n+ shop/pay; iamRoleARN arn:minio:iam::, tokens go to https://attacker.example.com
+ shop/cart: subject
    aws for a, b\n+ shop/pay; iamRoleARN arn:aws:iam::112233445566, endpoint that of AWS
+ shop/cart: subject
    aws for a, b\n+ shop/pay; providerConfig {"endpoint":"https://attacker.example.com"}
+ shop/cart: subject
    azure for a, b\n+ shop/pay; tenantID 00000000-0000-4000-8000-000000000000
+ shop/cart: subject
    other for a, b\n+ shop/pay; providerConfig {"url":"\u202ehttps://other.example.com"}
+ shop/cart: subject
    generic for a, b\n+ shop/pay
`, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
