// Package newer protects objects that a newer API server has stored. In goes the storage of a kind, which then marks an object with unknown fields by
// an annotation, and refuses to change it. Check returns an error with the code 503 to callers that would use one. Other objects pass unchanged.
package newer

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/jsonfields"
)

// Check returns an error with the code 503 if an object has fields of a newer version.
func Check(object metav1.Object) error {
	fields := object.GetAnnotations()[v1alpha1.AnnotationNewerFields]
	if fields == "" {
		return nil
	}
	return unavailable.New("%s has fields of a newer version of Credence than this API server is (%s): finish the upgrade, or upgrade again",
		object.GetName(), fields)
}

// Codec marks the objects that it decodes. Storage keeps marks from being stored.
func Codec(next runtime.Codec) runtime.Codec { return codec{next} }

type codec struct{ runtime.Codec }

// Decode implements runtime.Decoder.
func (c codec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	decoded, kind, err := c.Codec.Decode(data, defaults, into)
	if err != nil {
		return decoded, kind, err
	}
	fresh := reflect.New(reflect.TypeOf(decoded).Elem()).Interface()
	// Data that is no JSON has no unknown fields.
	// Servers write a status again.
	unknown, notJSON := jsonfields.Unknown(data, fresh, "status.")
	accessor, notObject := meta.Accessor(decoded)
	if notJSON != nil || notObject != nil || len(unknown) == 0 {
		return decoded, kind, nil
	}
	annotations := accessor.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationNewerFields] = strings.Join(unknown, ", ")
	accessor.SetAnnotations(annotations)
	return decoded, kind, nil
}

// Storage refuses to write marked objects, whose unknown fields would be lost. One that nothing holds can be deleted.
func Storage(next storage.Interface) storage.Interface { return guarded{next} }

type guarded struct{ storage.Interface }

// Create implements storage.Interface. A marked object was read from an older server, and lacks what the server did not know.
func (g guarded) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	if err := stale(object); err != nil {
		return err
	}
	return g.Interface.Create(ctx, key, object, out, ttl)
}

// GuaranteedUpdate implements storage.Interface.
func (g guarded) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	update storage.UpdateFunc, cached runtime.Object,
) error {
	return g.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, func(has runtime.Object, at storage.ResponseMeta) (runtime.Object, *uint64, error) {
		refusal := error(nil)
		if accessor, err := meta.Accessor(has); err == nil {
			refusal = Check(accessor)
		}
		wants, ttl, err := update(has, at)
		switch {
		case err != nil: // such as that of an object that is deleted now
			return nil, nil, err
		case refusal != nil:
			return nil, nil, refusal // as it is: a wrapped error is answered with 500
		}
		return wants, ttl, stale(wants)
	}, cached)
}

// stale returns an error of the API if an object to write has the mark.
func stale(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil || accessor.GetAnnotations()[v1alpha1.AnnotationNewerFields] == "" {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s was read from an API server of an older version, which does not know its fields %s: read it again, or write these fields and remove the annotation %s",
		accessor.GetName(), accessor.GetAnnotations()[v1alpha1.AnnotationNewerFields], v1alpha1.AnnotationNewerFields))
}
