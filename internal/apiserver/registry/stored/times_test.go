package stored

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

func TestBadTimes(t *testing.T) {
	at := func(text string) *metav1.Time {
		parsed := testkit.Need(time.Parse(time.RFC3339, text))(t)
		return &metav1.Time{Time: parsed}
	}
	bad := at("9999-12-31T23:59:59-00:01")
	identity := func(expires *metav1.Time) authv1alpha1.WorkloadIdentity {
		return authv1alpha1.WorkloadIdentity{Status: authv1alpha1.WorkloadIdentityStatus{Deliveries: []authv1alpha1.Delivery{
			{DeliveryReportSpec: authv1alpha1.DeliveryReportSpec{Expires: at("2026-01-02T03:04:05Z")}}, {DeliveryReportSpec: authv1alpha1.DeliveryReportSpec{Expires: expires}},
		}}}
	}
	for name, test := range map[string]struct {
		object any
		want   string // "": all times are good
	}{
		"none":               {object: identity(nil)},
		"the last":           {object: identity(at("9999-12-31T23:59:59Z"))},
		"the first":          {object: identity(at("0000-01-01T00:00:00Z"))},
		"too late":           {identity(bad), ".status.deliveries[1].expires"},
		"too early":          {identity(at("0000-01-01T00:00:00+00:01")), ".status.deliveries[1].expires"},
		"deleted":            {authv1alpha1.Quota{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: bad}}, ".metadata.deletionTimestamp"},
		"in a map":           {map[string]metav1.Time{"a": *bad}, "[a]"},
		"in a list of a map": {map[string][]any{"a": {1, nil, metav1.MicroTime(*bad)}}, "[a][2]"},
		"a cluster":          {v1alpha1.WorkloadCluster{Status: v1alpha1.WorkloadClusterStatus{LastSeenTime: bad}}, ".status.lastSeenTime"},
	} {
		if path, found, is := badTime(reflect.ValueOf(test.object)); path != test.want || is != (test.want != "") {
			t.Errorf("%s: %s at %q, %t, want %q", name, found, path, is, test.want)
		}
	}
}
