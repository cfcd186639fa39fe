package imagecredentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	protocol "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/internal/wording"
)

// tokens requests tokens of identities with those of pods.
type tokens interface {
	Token(ctx context.Context, name types.NamespacedName, pod identity.Token) (v1alpha1.TokenRequestStatus, error)
}

// provider answers one request.
type provider struct {
	registries registry.Config
	tokens     tokens
	now        func() time.Time
}

const (
	maxRequest = 1 << 20
	// early is how long before its end a password is not used any more: a pull takes a while.
	early = time.Minute
)

func (p provider) answer(ctx context.Context, in io.Reader, out io.Writer) error {
	request, err := read(in)
	if err != nil {
		return err
	}
	response, err := p.respond(ctx, request)
	if err != nil {
		return fmt.Errorf("image %s: %w", wording.AbbreviateTo(wording.OneLine(request.Image), 300), err)
	}
	return json.NewEncoder(out).Encode(response)
}

// read reads the request. The error of a decoder can have a part of the token.
func read(in io.Reader) (protocol.CredentialProviderRequest, error) {
	var request protocol.CredentialProviderRequest
	data, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	switch {
	case err != nil:
		return request, fmt.Errorf("read the kubelet's request: %w", err)
	case len(data) > maxRequest || json.Unmarshal(data, &request) != nil:
		return request, errors.New("standard input is not a request of a kubelet: the kubelet runs this program, by its --image-credential-provider-config")
	case request.APIVersion != protocol.SchemeGroupVersion.String() || request.Kind != "CredentialProviderRequest":
		return request, fmt.Errorf("the kubelet's request is a %q of %q: set apiVersion: %s in its configuration", wording.Abbreviate(wording.OneLine(request.Kind)), wording.Abbreviate(wording.OneLine(request.APIVersion)), protocol.SchemeGroupVersion)
	}
	return request, nil
}

func (p provider) respond(ctx context.Context, request protocol.CredentialProviderRequest) (protocol.CredentialProviderResponse, error) {
	of, known := p.registries.Of(request.Image)
	if !known {
		return protocol.CredentialProviderResponse{}, errors.New("no registry of the configuration has it: name its host in --registries, and in matchImages of the kubelet's configuration")
	}
	name, err := chosen(request)
	if err != nil {
		return protocol.CredentialProviderResponse{}, err
	}
	answer, err := p.tokens.Token(ctx, name, identity.NewToken(request.ServiceAccountToken))
	if err != nil {
		return protocol.CredentialProviderResponse{}, refused(name, err)
	}
	token := registry.Token{Value: identity.NewToken(answer.Token), Expires: answer.ExpirationTimestamp.Time, Target: answer.TargetSystem}
	got, err := of.Credentials(ctx, token, p.now)
	if err != nil {
		return protocol.CredentialProviderResponse{}, err
	}
	// The difference to the zero time, of a password without a known end, is far too large for a duration.
	kept := max(0, min(p.registries.CacheDuration, got.Expires.Add(-early).Sub(p.now())))
	return protocol.CredentialProviderResponse{
		TypeMeta: metav1.TypeMeta{APIVersion: protocol.SchemeGroupVersion.String(), Kind: "CredentialProviderResponse"},
		// Two registries of the configuration may be on one host.
		CacheKeyType:  protocol.ImagePluginCacheKeyType,
		CacheDuration: &metav1.Duration{Duration: kept},
		Auth:          map[string]protocol.AuthConfig{of.Images: {Username: got.Username, Password: got.Password.Reveal()}},
	}, nil
}

// chosen is the identity that the service account names, which is in its namespace.
func chosen(request protocol.CredentialProviderRequest) (types.NamespacedName, error) {
	name, present := request.ServiceAccountAnnotations[v1alpha1.AnnotationImagePullIdentity]
	switch {
	case request.ServiceAccountToken == "":
		return types.NamespacedName{}, errors.New("the kubelet gives no service-account token: set tokenAttributes in its configuration, as kubelet-config prints it")
	case !present:
		return types.NamespacedName{}, fmt.Errorf("the service account has no annotation %s, or the kubelet does not pass it on: kubelet-config prints the configuration that does", v1alpha1.AnnotationImagePullIdentity)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return types.NamespacedName{}, fmt.Errorf("annotation %s of the service account is %q: give the name of a WorkloadIdentity of its namespace", v1alpha1.AnnotationImagePullIdentity, wording.Abbreviate(wording.OneLine(name)))
	}
	namespace, err := namespaceOf(request.ServiceAccountToken)
	return types.NamespacedName{Namespace: namespace, Name: name}, err
}

// namespaceOf is the namespace of a service account by its token. Nothing relies on it: the API verifies the token, and refuses identities that
// its account may not use.
func namespaceOf(token string) (string, error) {
	var claims struct {
		Kubernetes struct {
			Namespace string `json:"namespace"`
		} `json:"kubernetes.io"`
	}
	if payload, ok := identity.Payload(token); ok && json.Unmarshal(payload, &claims) == nil && len(validation.IsDNS1123Label(claims.Kubernetes.Namespace)) == 0 {
		return claims.Kubernetes.Namespace, nil
	}
	return "", errors.New("the token of the kubelet's request is not one of a service account")
}

// refused is why there is no token of an identity. The pod's author reads it from the admin of the node.
func refused(name types.NamespacedName, err error) error {
	why := wording.AbbreviateTo(wording.OneLine(wording.Redact(err.Error())), 600)
	cause := failures.Of(err)
	switch {
	case apierrors.IsNotFound(err) && cause == failures.Unreachable:
		return fmt.Errorf("no token of workload identity %s: the API has no workloadidentities/selftoken (%s): its server is older than this program, or is not registered: an admin of the identity cluster upgrades it", name, why)
	case cause == failures.IdentityMissing:
		return fmt.Errorf("no token of workload identity %s: it does not exist: create it, or correct annotation %s of the service account", name, v1alpha1.AnnotationImagePullIdentity)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("no token of workload identity %s: the API does not accept the service-account token (%s): serviceAccountTokenAudience of the kubelet's configuration has to be an audience of the API, and the API that of the pod's cluster", name, why)
	default:
		return fmt.Errorf("no token of workload identity %s: %s", name, why)
	}
}
