package newer_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/storage"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/test/testkit"
)

const (
	known  = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"a","annotations":{"a":"b"}},"spec":{"audiences":["x"],"targetSystem":{"type":"t","providerConfig":{"any":1}}}}`
	byNext = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"a"},"spec":{"audiences":["x"],"sharing":{"all":true},"targetSystem":{"type":"t"}}}`
)

func decode(t *testing.T, codec runtime.Codec, text string) *v1alpha1.WorkloadIdentity {
	t.Helper()
	into := &v1alpha1.WorkloadIdentity{}
	testkit.Must(t, runtime.DecodeInto(codec, []byte(text), into))
	return into
}

func newCodec(t *testing.T) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	testkit.Must(t, v1alpha1.AddToScheme(scheme))
	return newer.Codec(serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion))
}

// An object with a field that this version does not know is not used, and the mark of it is not stored.
func TestFieldsOfANewerVersion(t *testing.T) {
	codec := newCodec(t)
	if err := newer.Check(decode(t, codec, known)); err != nil {
		t.Errorf("an object of this version: %v", err)
	}
	marked := decode(t, codec, byNext)
	err := newer.Check(marked)
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "(spec.sharing)") {
		t.Errorf("an object of a newer version: %v, want 503 and the field", err)
	}
	var stored bytes.Buffer
	testkit.Must(t, codec.Encode(marked, &stored))
	if strings.Contains(stored.String(), v1alpha1.AnnotationNewerFields) || marked.Annotations[v1alpha1.AnnotationNewerFields] == "" {
		t.Errorf("stored is %s, of %v", &stored, marked.Annotations)
	}
}

// has is a storage with one object.
type has struct {
	storage.Interface
	object runtime.Object
}

func (h *has) GuaranteedUpdate(_ context.Context, _ string, _ runtime.Object, _ bool, _ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	updated, _, err := update(h.object, storage.ResponseMeta{})
	if err == nil {
		h.object = updated
	}
	return err
}

// code is the one with which an API server answers.
func code(err error) int { return int(responsewriters.ErrorToAPIStatus(err).Code) }

func TestObjectsOfANewerVersionAreNotChanged(t *testing.T) {
	codec := newCodec(t)
	for text, changes := range map[string]bool{known: true, byNext: false} {
		store := &has{object: decode(t, codec, text)}
		change := func(do func(*v1alpha1.WorkloadIdentity)) error {
			return newer.Storage(store).GuaranteedUpdate(t.Context(), "a", nil, false, nil, storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
				changed := object.DeepCopyObject().(*v1alpha1.WorkloadIdentity)
				changed.Annotations = nil // as a PUT of a client that does not know the mark
				do(changed)
				return changed, nil
			}), nil)
		}
		if err := change(func(wi *v1alpha1.WorkloadIdentity) { wi.Labels = map[string]string{"a": "b"} }); (err == nil) != changes || !changes && code(err) != http.StatusServiceUnavailable {
			t.Errorf("changed: %v, want %v", err, changes)
		}
		if err := change(func(wi *v1alpha1.WorkloadIdentity) { wi.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }); err != nil {
			t.Errorf("deleted: %v", err)
		}
	}
}
