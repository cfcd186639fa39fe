package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/tokenrequest"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// negotiation is the API machinery's, less what our types cannot do, and with a closer look at what is decoded.
type negotiation struct {
	runtime.NegotiatedSerializer
	strict strictDecoders
}

// strictDecoders report unknown and duplicate fields.
type strictDecoders struct {
	json, yaml runtime.Decoder
}

func newNegotiation(scheme *runtime.Scheme, serializer runtime.NegotiatedSerializer) negotiation {
	strict := func(yaml bool) runtime.Decoder {
		return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Yaml: yaml, Strict: true})
	}
	return negotiation{NegotiatedSerializer: serializer, strict: strictDecoders{json: strict(false), yaml: strict(true)}}
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer without protobuf, which our types have no encoding for.
// Offered all the same, it would be chosen by the cluster's own controllers, and no namespace could ever be deleted.
func (n negotiation) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(n.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (n negotiation) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return carefulDecoder{Decoder: n.NegotiatedSerializer.DecoderToVersion(decoder, version), strict: n.strict}
}

// carefulDecoder refuses what would mean something else, or nothing, further on.
type carefulDecoder struct {
	runtime.Decoder
	strict strictDecoders
}

// Decode implements runtime.Decoder. Its errors repeat little of what could not be decoded.
func (d carefulDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.decode(data, defaults, into)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		shown := make([]error, 0, maxStrictErrors)
		for _, err := range strict.Errors()[:min(len(strict.Errors()), maxStrictErrors)] {
			shown = append(shown, errors.New(abbreviate(err.Error())))
		}
		return obj, gvk, runtime.NewStrictDecodingError(shown)
	}
	if err != nil && len(err.Error()) > maxMessage {
		err = errors.New(abbreviate(err.Error()))
	}
	return obj, gvk, err
}

// maxStrictErrors is how many unknown and repeated fields are reported.
const maxStrictErrors = 10

func (d carefulDecoder) decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	switch into.(type) {
	case *tokenrequest.Object, *identityv1alpha1.KeyRotation, *identityv1alpha1.KeyRevocation:
		// A misspelt or repeated contextObject must not become a token without context, also with fieldValidation: Ignore.
		return d.decodeStrictly(data, defaults, into)
	}
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	wi, ok := obj.(*v1alpha1.WorkloadIdentity)
	if !ok || wi.Spec.TargetSystem.ProviderConfig == nil {
		return obj, gvk, err
	}
	// A number that no reader can hold would make the machinery panic before validation sees it.
	var value any
	if invalid := json.Unmarshal(wi.Spec.TargetSystem.ProviderConfig.Raw, &value); invalid != nil {
		return nil, gvk, fmt.Errorf("spec.targetSystem.providerConfig: %w", invalid)
	}
	if !json.Valid(data) {
		// YAML has lost its duplicate keys by now; where it has a providerConfig it must not have had any.
		if _, _, refusal := d.decodeStrictly(data, gvk, &v1alpha1.WorkloadIdentity{}); refusal != nil {
			return nil, gvk, refusal
		}
	}
	return obj, gvk, err
}

// decodeStrictly decodes what has no other version to be converted to or from. Unknown and repeated fields are errors.
func (d carefulDecoder) decodeStrictly(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	strict := d.strict.yaml
	if start := bytes.TrimLeft(data, " \t\r\n"); len(start) > 0 && start[0] == '{' && json.Valid(data) {
		strict = d.strict.json
	}
	obj, gvk, err := strict.Decode(data, defaults, into)
	if err == nil {
		obj.GetObjectKind().SetGroupVersionKind(*gvk) // a body may leave its kind out
	}
	if runtime.IsStrictDecodingError(err) {
		// Made anew: as a strict decoding error it would be no more than a warning.
		return nil, gvk, fmt.Errorf("decode %s: %s", gvk.Kind, err.Error())
	}
	return obj, gvk, err
}
