package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Limits of the body of a request. The largest WorkloadIdentity that is valid fits in with the metadata that the server
// adds. Decoding costs by the value, not by the byte, and YAML costs ten times as much as JSON: 64 KiB of it, and 20,000
// values of JSON, are some 100 ms of CPU.
const (
	maxBodyBytes  = 512 << 10
	maxBodyValues = 20_000
	maxYAMLBytes  = 64 << 10
)

// checkBodies refuses bodies that are too large, and those that the API machinery would read as something else than they
// are. Nothing has decoded them by then.
func checkBodies(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
		if err == nil {
			err = checkBody(info, r.Header.Get("Content-Type"), body)
		} else if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			err = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes", maxBodyBytes))
		}
		if err != nil {
			version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
			responsewriters.ErrorNegotiated(err, serializer, version, w, r)
			return
		}
		if given, rest := takeUID(info, r.Header.Get("Content-Type"), body); given.UID != "" {
			r, body = r.WithContext(workloadidentity.WithGivenUID(r.Context(), given)), rest
			r.ContentLength = int64(len(body))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func checkBody(info *request.RequestInfo, contentType string, body []byte) (err error) {
	if len(body) == 0 && strings.HasPrefix(info.Verb, "delete") {
		return nil // everything has a default
	}
	var document *yaml.Node
	if json.Valid(body) {
		if n := countValues(body); n > maxBodyValues {
			return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d values, the body has %d", maxBodyValues, n))
		}
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("null")) {
			return errNotOneObject
		}
	} else if document, err = checkYAML(body); err != nil {
		return err
	}
	if info.Resource != "workloadidentities" {
		return nil
	}
	if info.Subresource == "" && slices.Contains([]string{"create", "update", "patch"}, info.Verb) {
		if err := checkYAMLValues(info.Name, contentType, body, document); err != nil {
			return err
		}
	}
	if info.Verb == "patch" {
		return checkPatch(info.Name, contentType, body)
	}
	return nil
}

var errNotOneObject = apierrors.NewBadRequest("the body must be one object: it is empty, or more follows after the first one")

// countValues returns how many values JSON has, in objects and arrays: those after a colon, and those before a comma.
func countValues(body []byte) int {
	n, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == ',' || c == ':'):
			n++
		}
	}
	return n
}

// checkYAML returns the document of a body. It refuses anchors, by which 100 KB become gigabytes, and documents after the first one,
// which would be left out. Text that is not YAML is refused by the API machinery.
func checkYAML(body []byte) (*yaml.Node, error) {
	if len(body) > maxYAMLBytes {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes for what is not JSON, and %d for JSON", maxYAMLBytes, maxBodyBytes))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if err == nil {
		if hasAnchor(&document) {
			return nil, apierrors.NewBadRequest("the body has an anchor or an alias of YAML: write the value out in each place")
		}
		err = decoder.Decode(&more)
		if err == nil || isNull(&document) {
			return nil, errNotOneObject
		}
	} else if errors.Is(err, io.EOF) {
		return nil, errNotOneObject
	}
	if !errors.Is(err, io.EOF) {
		return nil, apierrors.NewBadRequest("the body is neither JSON nor YAML: " + abbreviate(err.Error()))
	}
	return &document, nil
}

func hasAnchor(node *yaml.Node) bool {
	return node.Anchor != "" || node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, hasAnchor)
}

func isNull(document *yaml.Node) bool {
	return len(document.Content) == 1 && document.Content[0].Tag == "!!null"
}

// maxMessage bounds the text that a message or an audit event repeats of a request, in bytes.
const maxMessage = 1024

func abbreviate(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
