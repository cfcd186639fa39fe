// Package newer protects objects that a newer API server has stored. In goes the storage of a kind, which then marks an object with unknown fields by
// an annotation, and refuses to change it. Check returns an error with the code 503 to callers that would use one. Other objects pass unchanged.
package newer

import (
	"context"
	"io"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/json"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
)

// Check returns an error with the code 503 if an object has fields of a newer version.
func Check(object metav1.Object) error {
	fields := object.GetAnnotations()[v1alpha1.AnnotationNewerFields]
	if fields == "" {
		return nil
	}
	return unavailable.New("%s has fields of a newer version of Credence than this API server is (%s): finish the upgrade, or delete the object",
		object.GetName(), fields)
}

// Codec marks the objects that it decodes, and stores no marks.
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
	unknown, err := json.UnmarshalStrict(data, fresh, json.DisallowUnknownFields)
	if err == nil && len(unknown) > 0 {
		fields := make([]string, len(unknown))
		for i, each := range unknown {
			fields[i] = strings.Trim(strings.TrimPrefix(each.Error(), "unknown field "), `"`)
		}
		mark(decoded, strings.Join(fields, ", "))
	}
	return decoded, kind, nil
}

// Encode implements runtime.Encoder. A writer who got an object with the mark may send it back.
func (c codec) Encode(object runtime.Object, w io.Writer) error {
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetAnnotations()[v1alpha1.AnnotationNewerFields] != "" {
		object = object.DeepCopyObject()
		mark(object, "")
	}
	return c.Codec.Encode(object, w)
}

func mark(object runtime.Object, fields string) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	annotations := accessor.GetAnnotations()
	if fields == "" {
		delete(annotations, v1alpha1.AnnotationNewerFields)
	} else {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationNewerFields] = fields
	}
	accessor.SetAnnotations(annotations)
}

// Storage refuses to change marked objects: their unknown fields would be lost. They can be deleted.
func Storage(next storage.Interface) storage.Interface { return guarded{next} }

type guarded struct{ storage.Interface }

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
		if err != nil || refusal == nil {
			return wants, ttl, err
		}
		if accessor, err := meta.Accessor(wants); err == nil && accessor.GetDeletionTimestamp() != nil {
			return wants, ttl, nil
		}
		return nil, nil, refusal // as it is: a wrapped error is answered with 500
	}, cached)
}
