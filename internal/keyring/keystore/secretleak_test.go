package keystore_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/test/testkit"
)

func encodeJSON(t testing.TB, value any) []byte {
	t.Helper()
	encoded := testkit.Need(json.Marshal(value))(t)
	return encoded
}

func writeJSON(t testing.TB, w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encodeJSON(t, value))
}

func sprint(value any) string { return fmt.Sprintf("%v %+v %#v", value, value, value) }

// partOf returns a part of a PEM file that a text has in it, as it is or in the base64 of a Secret.
func partOf(text string, file []byte) (string, bool) {
	const length = 20
	lines := slices.DeleteFunc(strings.Split(string(file), "\n"), func(line string) bool { return strings.HasPrefix(line, "--") })
	encoded := base64.StdEncoding.EncodeToString(file)
	for _, secret := range append(lines, encoded[min(40, len(encoded)):]) {
		for i := 0; i+length <= len(secret); i++ {
			if part := secret[i : i+length]; strings.Contains(text, part) {
				return part, true
			}
		}
	}
	return "", false
}

// roundTrip answers requests without a network.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering returns a client of an API that answers every request with the body.
func answering(t testing.TB, body []byte) corev1client.SecretsGetter {
	t.Helper()
	client := testkit.Need(corev1client.NewForConfig(&rest.Config{
		Host:          "https://api.example.com",
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader(body)), Request: r,
			}, nil
		}),
	}))(t)
	return client
}

// An API, a proxy or an admission webhook that repeats what it was sent or should have sent does not bring keys into errors.
func TestSecretErrorsShowNoContent(t *testing.T) {
	stored := dataOf(t, firstRing())
	maps.Copy(stored, dataOf(t, nextRing()))
	secret := ownSecret(stored)
	secret.ResourceVersion = "1"
	echo := string(encodeJSON(t, secret)) + string(slices.Concat(slices.Collect(maps.Values(stored))...))
	echo64 := base64.StdEncoding.EncodeToString(bytes.Join(slices.Collect(maps.Values(stored)), nil))
	status := func(code int, reason metav1.StatusReason) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			answerStatus(w, metav1.Status{
				Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "denied: " + echo,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: echo, Field: "data"}}},
			})
		}
	}
	body := func(code int, contentType, text string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	secret.APIVersion, secret.Kind = "v1", "Secret"
	wrongField := strings.Replace(string(encodeJSON(t, secret)), `"metadata":{`, `"metadata":{"labels":"`+echo64+`",`, 1)
	secret.Kind = "Pod"
	anotherKind := string(encodeJSON(t, secret))
	secret.Kind = echo64
	unknownKind := string(encodeJSON(t, secret))
	cases := map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"webhook":        {status(http.StatusForbidden, metav1.StatusReasonForbidden), "403 (Forbidden): allow this process to get, watch and update it"},
		"invalid":        {status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), "422"},
		"internal":       {status(http.StatusInternalServerError, metav1.StatusReasonInternalError), "500"},
		"unauthorized":   {status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), "401 (Unauthorized): check the credentials"},
		"proxy":          {body(http.StatusBadGateway, "text/plain", echo), "502"},
		"proxy's 404":    {body(http.StatusNotFound, "text/plain", echo), "404 (Not Found): check that the namespace exists"},
		"another kind":   {body(http.StatusOK, "application/json", anotherKind), "the API answered with"},
		"unknown kind":   {body(http.StatusOK, "application/json", unknownKind), "can not be read"},
		"wrong field":    {body(http.StatusOK, "application/json", wrongField), "can not be read"},
		"no JSON":        {body(http.StatusOK, "application/json", echo), "can not be read"},
		"another format": {body(http.StatusOK, "application/vnd.kubernetes.protobuf", echo), "can not be read"},
	}
	for name, c := range cases {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
			t.Run(name+" at "+method, func(t *testing.T) {
				a := newAPI(t)
				store, version := keystore.NewSecret(a.client(t), namespace, ringName), ""
				if method != http.MethodPost {
					version = a.put(ownSecret(dataOf(t, firstRing())))
				}
				a.answer(func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == method {
						c.answer(w)
					}
					return r.Method == method
				})
				errs := []error{store.Save(t.Context(), nextRing(), version)}
				if method == http.MethodGet {
					_, _, err := store.Load(t.Context())
					errs = append(errs, err)
				}
				for i, err := range errs {
					switch {
					case err == nil || errors.Is(err, keystore.ErrNotFound) || errors.Is(err, keystore.ErrConflict):
						t.Errorf("error %d: %v, want an outage", i, err)
					case !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "Secret "+namespace+"/"+ringName):
						t.Errorf("error %d: %v, want an error with %q and the Secret", i, err, c.want)
					}
					mustHide(t, err, stored)
				}
			})
		}
	}
}

// A watch gets whole Secrets, and its errors could repeat them too.
func TestSecretWatchShowsNoContent(t *testing.T) {
	stored := dataOf(t, firstRing())
	secret := ownSecret(stored)
	secret.APIVersion, secret.Kind = "v1", "Secret"
	object := string(encodeJSON(t, secret))
	withoutKind := strings.Replace(object, `"kind":"Secret",`, "", 1)
	refusal := string(encodeJSON(t, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Message: object,
	}))
	cases := map[string]struct {
		code         int
		answer, want string
	}{
		"refused":      {http.StatusForbidden, refusal, "403 (Forbidden)"},
		"error event":  {http.StatusOK, `{"type":"ERROR","object":` + refusal + `}`, "403 (Forbidden)"},
		"no kind":      {http.StatusOK, `{"type":"ADDED","object":` + withoutKind + `}`, "500"},
		"no such type": {http.StatusOK, `{"type":"NEW","object":` + object + `}`, "500"},
		"no JSON":      {http.StatusOK, string(stored["ring.json"]) + object, "500"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.answer(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.answer)
				return true
			})
			err := keystore.NewSecret(a.client(t), namespace, ringName).Watch(t.Context(), func() { t.Error("a change was reported") })
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "watch Secret "+namespace+"/"+ringName) {
				t.Errorf("watch: %v, want an error with %q and the Secret", err, c.want)
			}
			mustHide(t, err, stored)
		})
	}
}

// The client would log the bodies of requests and answers at a high verbosity.
func TestSecretIsNotLogged(t *testing.T) {
	var logged bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(10), textlogger.Output(&logged)))
	ctx := klog.NewContext(t.Context(), logger)
	a := newAPI(t)
	store := keystore.NewSecret(a.client(t), namespace, ringName)
	testkit.Must(t, store.Save(ctx, firstRing(), ""))
	_, version, err := store.Load(ctx)
	testkit.Must(t, err)
	testkit.Must(t, store.Save(ctx, nextRing(), version))
	watching, cancel := context.WithCancel(ctx)
	testkit.Must(t, store.Watch(watching, cancel))
	for _, data := range []map[string][]byte{dataOf(t, firstRing()), dataOf(t, nextRing())} {
		mustHide(t, logged.String(), data)
	}
}

func TestSecretWithoutItsAPI(t *testing.T) {
	a, store, version := secretFilled(t)
	a.server.Close()
	_, _, err := store.Load(t.Context())
	for operation, err := range map[string]error{
		"load": err, "save": store.Save(t.Context(), nextRing(), version), "watch": store.Watch(t.Context(), func() {}),
	} {
		switch {
		case err == nil || errors.Is(err, keystore.ErrNotFound) || errors.Is(err, keystore.ErrConflict) || errors.Is(err, keystore.ErrUnusable):
			t.Errorf("%s: %v, want an outage", operation, err)
		case !strings.Contains(err.Error(), "Secret credence-system/signing-keys") || !strings.Contains(err.Error(), "connection refused"):
			t.Errorf("%s: %v, want an error with the Secret and the reason", operation, err)
		}
	}
}
