package newer_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// An object with a field that this version does not know is not used.
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
	if err := newer.Check(decode(t, codec, strings.Replace(known, `"spec"`, `"status":{"later":1},"spec"`, 1))); err != nil {
		t.Errorf("a status, which servers write again: %v", err)
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
func code(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return int(responsewriters.ErrorToAPIStatus(err).Code)
}

func (h *has) Create(_ context.Context, _ string, object, _ runtime.Object, _ uint64) error {
	h.object = object
	return nil
}

// A server refuses to write an object that it does not know whole, and one that was read from such a server. No field is lost, also where both serve.
func TestObjectsOfANewerVersionAreNotWritten(t *testing.T) {
	codec := newCodec(t)
	whole, marked := decode(t, codec, known), decode(t, codec, byNext)
	for name, test := range map[string]struct {
		has, wants *v1alpha1.WorkloadIdentity
		code       int
	}{
		"of this version":                     {whole, whole, http.StatusOK},
		"without the mark, by an old client":  {marked, whole, http.StatusServiceUnavailable},
		"with a finalizer, by its deletion":   {marked, marked, http.StatusServiceUnavailable},
		"read from an older server":           {whole, marked, http.StatusBadRequest},
		"made of what an older server showed": {nil, marked, http.StatusBadRequest},
		"made anew":                           {nil, whole, http.StatusOK},
	} {
		store := &has{object: test.has}
		guarded := newer.Storage(store)
		var err error
		if test.has == nil {
			err = guarded.Create(t.Context(), "a", test.wants, nil, 0)
		} else {
			err = guarded.GuaranteedUpdate(t.Context(), "a", nil, false, nil, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) { return test.wants.DeepCopy(), nil }), nil)
		}
		if got := code(err); got != test.code {
			t.Errorf("%s: %v, want %d", name, err, test.code)
		}
	}
	// Of an object that is deleted at once, nothing is written.
	gone := errors.New("gone")
	err := newer.Storage(&has{object: marked}).GuaranteedUpdate(t.Context(), "a", nil, false, nil, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) { return nil, gone }), nil)
	if !errors.Is(err, gone) {
		t.Errorf("deleted at once: %v", err)
	}
}
