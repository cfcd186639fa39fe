package quotareview

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/quotas"
)

type keeper struct {
	refused string
	err     error
	last    quotas.Write
}

func (k *keeper) Admit(_ context.Context, w quotas.Write) (string, error) {
	k.last = w
	return k.refused, k.err
}

func (*keeper) Destroy() {}

func TestCreate(t *testing.T) {
	object := runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Shoot","metadata":{"name":"one"},"spec":{"workers":3}}`)}
	spec := v1alpha1.QuotaReviewSpec{Request: "r", Group: "g", Resource: "shoots", Object: object, OldObject: &object}
	k := &keeper{}
	create := func(spec v1alpha1.QuotaReviewSpec, options *metav1.CreateOptions) (v1alpha1.QuotaReviewStatus, error) {
		got, err := NewREST(k).Create(t.Context(), &v1alpha1.QuotaReview{Spec: spec, Status: v1alpha1.QuotaReviewStatus{Allowed: true}}, nil, options)
		if err != nil {
			return v1alpha1.QuotaReviewStatus{}, err
		}
		return got.(*v1alpha1.QuotaReview).Status, nil
	}
	if got, err := create(spec, nil); err != nil || !got.Allowed || k.last.DryRun || k.last.Resource.String() != "shoots.g" || k.last.Old.GetName() != "one" {
		t.Errorf("%+v, %v of %+v", got, err, k.last)
	}
	if workers := k.last.Object.Object["spec"].(map[string]any)["workers"]; workers != int64(3) {
		t.Errorf("a number is a %T: expressions tell whole ones from others", workers)
	}
	if _, err := create(spec, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || !k.last.DryRun {
		t.Errorf("a dry run: %v of %+v", err, k.last)
	}
	k.refused = "too much"
	if got, err := create(spec, nil); err != nil || got.Allowed || got.Refused != "too much" {
		t.Errorf("refused: %+v, %v", got, err)
	}
	k.err = errors.New("away")
	if _, err := create(spec, nil); !errors.Is(err, k.err) {
		t.Errorf("an outage: %v", err)
	}
	bad := v1alpha1.QuotaReviewSpec{Object: runtime.RawExtension{Raw: []byte(`[]`)}, OldObject: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Shoot"}`)}}
	_, err := create(bad, nil)
	for _, want := range []string{"spec.request", "spec.resource", "spec.object", "spec.oldObject.metadata.name"} {
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
