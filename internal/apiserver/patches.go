package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"
)

// checkPatches refuses patches whose providerConfig has a key twice. The machinery merges a patch before anybody can see
// what it said, and keeps the last of the two.
func checkPatches(next http.Handler, serializer runtime.NegotiatedSerializer, maxBytes int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || info.Verb != "patch" || info.Resource != "workloadidentities" {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
		if err == nil {
			err = checkPatch(info.Name, r.Header.Get("Content-Type"), body)
		} else if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			err = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes", maxBytes))
		}
		if err != nil {
			responsewriters.ErrorNegotiated(err, serializer, v1alpha1.SchemeGroupVersion, w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// checkPatch looks at merge patches and at objects to apply. A JSON patch holds values, which validation sees whole.
func checkPatch(name, contentType string, body []byte) error {
	if strings.Contains(contentType, "json-patch") {
		return nil
	}
	if !json.Valid(body) {
		if _, err := yaml.YAMLToJSON(body); err != nil {
			return nil // not for us to say: it will be refused as a whole
		}
		if _, err := yaml.YAMLToJSONStrict(body); err != nil && bytes.Contains(body, []byte("providerConfig")) {
			return apierrors.NewBadRequest("decode patch: " + err.Error())
		}
		return nil
	}
	var patch struct {
		Spec struct {
			TargetSystem struct {
				ProviderConfig json.RawMessage `json:"providerConfig"`
			} `json:"targetSystem"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &patch); err != nil || len(patch.Spec.TargetSystem.ProviderConfig) == 0 {
		return nil // not for us to say
	}
	if errs := workloadidentity.CheckProviderConfigKeys(patch.Spec.TargetSystem.ProviderConfig); len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity").GroupKind(), name, errs)
	}
	return nil
}
