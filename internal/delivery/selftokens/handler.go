package selftokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
)

const (
	// longest is how long a request may take.
	longest = 25 * time.Second
	// maxBody bounds a request: those of the driver have nothing in them.
	maxBody = 16 << 10
	// maxToken bounds the service-account token of a pod.
	maxToken = 16 << 10
)

// Identities reads identities live; its errors are those of the API.
type Identities interface {
	Read(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error)
}

// Tokens requests tokens of the identity with a uid, as the agent; its errors are those of the API.
type Tokens interface {
	Token(ctx context.Context, name types.NamespacedName, uid types.UID, binding types.NamespacedName, object *v1alpha1.ContextObject, duration time.Duration) (identity.Token, error)
}

// Config is what a Handler needs.
type Config struct {
	// Reviews, Pods and Rights are of the workload cluster.
	Reviews authenticationclient.TokenReviewInterface
	Pods    corev1client.PodsGetter
	Rights  authority.Reviewer
	// Identities and Tokens are of the identity cluster.
	Identities Identities
	Tokens     Tokens
	// NamesAccounts has tokens name the service account: that of a cluster which has joined.
	NamesAccounts bool
	// Namespaces are those whose pods get tokens; empty: all.
	Namespaces []string
	Clock      clock.PassiveClock
	Recorder   *Recorder
	Log        *slog.Logger
}

// Handler answers requests for tokens.
type Handler struct {
	Config
	mux            *http.ServeMux
	unknown, known *room // for requests before and after their caller is known
}

// New returns a Handler.
func New(config Config) *Handler {
	h := &Handler{Config: config, mux: http.NewServeMux(), unknown: newRoom(ofAddress, unknownPlaces), known: newRoom(ofNamespace, knownPlaces)}
	h.mux.HandleFunc("POST /apis/"+v1alpha1.GroupName+"/v1alpha1/namespaces/{namespace}/workloadidentities/{name}/selftoken", h.create)
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Handler) create(w http.ResponseWriter, r *http.Request) {
	began := h.Clock.Now()
	ctx, cancel := context.WithTimeout(r.Context(), longest)
	defer cancel()
	name := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	token, err := bearer(r)
	if err == nil {
		err = check(w, r, name)
	}
	var status v1alpha1.TokenRequestStatus
	if err == nil {
		status, err = h.token(ctx, name, token, r.RemoteAddr)
	}
	if err != nil {
		h.Recorder.answered(refuse(w, err), h.Clock.Since(began))
		return
	}
	h.Recorder.answered(http.StatusCreated, h.Clock.Since(began))
	answer(w, http.StatusCreated, &v1alpha1.TokenRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Status: status,
	})
}

// bearer is the service-account token of a request.
func bearer(r *http.Request) (identity.Token, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" || len(token) > maxToken {
		return identity.Token{}, apierrors.NewUnauthorized("the service-account token of a pod is needed, as a bearer token")
	}
	return identity.NewToken(token), nil
}

// check refuses a request for anything else than the token of an identity: the identity's server has more to choose from.
func check(w http.ResponseWriter, r *http.Request, name types.NamespacedName) error {
	if len(validation.IsDNS1123Label(name.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(name.Name)) > 0 {
		return apierrors.NewBadRequest("the path does not name a WorkloadIdentity")
	}
	if r.URL.RawQuery != "" {
		return apierrors.NewBadRequest("the agent of a workload cluster takes no parameters")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("read the TokenRequest: %v", err))
	}
	var tr v1alpha1.TokenRequest
	if err := strictjson.Known(body, &tr); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is not a TokenRequest in JSON: %v", err))
	}
	switch {
	case tr.APIVersion != v1alpha1.SchemeGroupVersion.String() || tr.Kind != "TokenRequest":
		return apierrors.NewBadRequest("the body is not a TokenRequest of " + v1alpha1.SchemeGroupVersion.String())
	case tr.Spec != v1alpha1.TokenRequestSpec{} || tr.UID != "" || len(tr.Annotations) > 0 || tr.Name != "" && tr.Name != name.Name || tr.Namespace != "" && tr.Namespace != name.Namespace:
		return apierrors.NewBadRequest("metadata and spec of the TokenRequest must be left out: the agent of a workload cluster requests tokens of the default lifetime, for the pod whose token it is sent")
	}
	return nil
}

// refuse answers with an error, and returns its code.
func refuse(w http.ResponseWriter, err error) int {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(errors.New("the request could not be answered"))
	}
	answered := status.Status()
	answered.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	answer(w, int(answered.Code), &answered)
	return int(answered.Code)
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the client has gone
}
