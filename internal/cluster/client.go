package cluster

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// API is the part of a cluster's API that the commands need.
type API struct {
	Core   rest.Interface // v1
	tokens rest.Interface // authentication.gardener.cloud/v1alpha1
	Keys   rest.Interface // identity.credence.dev/v1alpha1
	Host   string
	HTTP   *http.Client // with the credentials of the user

	Authorities *x509.CertPool // those that the kubeconfig has for the server, and of this machine; nil if it has none
}

// ServiceAccountUID looks up the uid of a service account.
func (a *API) ServiceAccountUID(ctx context.Context, namespace, name string) (types.UID, error) {
	var account corev1.ServiceAccount
	err := a.Core.Get().Namespace(namespace).Resource("serviceaccounts").Name(name).Do(ctx).Into(&account)
	return account.UID, err
}

// CreateToken requests a token of a WorkloadIdentity. The answer is the request with its status filled in.
func (a *API) CreateToken(ctx context.Context, namespace, name string, spec v1alpha1.TokenRequestSpec) (*v1alpha1.TokenRequest, error) {
	meta := metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"}
	var answer v1alpha1.TokenRequest
	// The client would repeat the request on 503 until its deadline, and hide the reason of the failure.
	err := a.tokens.Post().MaxRetries(0).Namespace(namespace).Resource("workloadidentities").Name(name).SubResource("token").
		Body(&v1alpha1.TokenRequest{TypeMeta: meta, Spec: spec}).Do(ctx).Into(&answer)
	if err != nil {
		return nil, err
	}
	answer.TypeMeta = meta
	return &answer, nil
}

// Identity reads a WorkloadIdentity.
func (a *API) Identity(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	var identity v1alpha1.WorkloadIdentity
	err := a.tokens.Get().MaxRetries(0).Namespace(namespace).Resource("workloadidentities").Name(name).Do(ctx).Into(&identity)
	return &identity, err
}

// New returns clients of the three API groups that are needed: a full clientset would double the start-up time.
func New(config *rest.Config) (*API, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register core types: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register token types: %w", err)
	}
	if err := identityv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register types of keys: %w", err)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client := func(apiPath string, group schema.GroupVersion) (rest.Interface, error) {
		config := rest.CopyConfig(config)
		config.APIPath, config.GroupVersion = apiPath, &group
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		return rest.RESTClientForConfigAndClient(config, transport)
	}
	core, err := client("/api", corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	tokens, err := client("/apis", v1alpha1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	keys, err := client("/apis", identityv1alpha1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	opened := &API{Core: core, tokens: tokens, Keys: keys, Host: config.Host, HTTP: transport}
	if err := rest.LoadTLSFiles(config); err == nil && len(config.CAData) > 0 {
		if opened.Authorities, err = x509.SystemCertPool(); err != nil {
			opened.Authorities = x509.NewCertPool()
		}
		opened.Authorities.AppendCertsFromPEM(config.CAData)
	}
	return opened, nil
}

// Get reads an object of a group that the clients do not know.
func (a *API) Get(ctx context.Context, into any, path string) error {
	address, query, _ := strings.Cut(path, "?")
	request := a.Core.Get().MaxRetries(0).AbsPath(address)
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for name, values := range parameters {
		request.Param(name, values[0])
	}
	body, err := Answer(request.Do(ctx))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer to %s: %w", address, err)
	}
	return nil
}

// Answer is an answer as it came, or the error that it holds.
func Answer(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// Both are the two that an identity lives between; they may be one.
type Both struct {
	Identity, Workload *API
}

// CheckName refuses what would be another path than the one of an object.
func CheckName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if reasons := content.IsPathSegmentName(name); len(reasons) > 0 {
		return fmt.Errorf("%q is not a name: it %s", name, strings.Join(reasons, ", "))
	}
	return nil
}

// Identities are those of a namespace, or of all (empty).
func Identities(namespace string) Listing {
	return Listing{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Namespace: namespace, Resource: "workloadidentities"}
}

// IdentityNames are those of a namespace.
func (a *API) IdentityNames(ctx context.Context, namespace string) ([]string, error) {
	return a.names(ctx, Identities(namespace))
}

// ServiceAccountNames are those of a namespace.
func (a *API) ServiceAccountNames(ctx context.Context, namespace string) ([]string, error) {
	return a.names(ctx, Listing{Namespace: namespace, Resource: "serviceaccounts"})
}

func (a *API) names(ctx context.Context, l Listing) (names []string, err error) {
	l.Metadata = true
	err = Each(ctx, a, l, func(object *metav1.PartialObjectMetadata) { names = append(names, object.Name) })
	return names, err
}
