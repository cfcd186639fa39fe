package cluster

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// API is the API of a cluster, for one user.
type API struct {
	client rest.Interface
	Host   string
	HTTP   *http.Client // with the credentials of the user

	TokenFile string // that of the kubeconfig; empty without one

	Authorities *x509.CertPool // those that the kubeconfig has for the server, and of this machine; nil if it has none
}

// New returns a client of all groups of the API: objects go to and fro as JSON. A full clientset would double the start-up time.
func New(config *rest.Config) (*API, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme() // of errors alone
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	plain := rest.CopyConfig(config)
	plain.APIPath, plain.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	plain.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(plain, transport)
	if err != nil {
		return nil, err
	}
	opened := &API{client: client, Host: config.Host, HTTP: transport, TokenFile: config.BearerTokenFile}
	if err := rest.LoadTLSFiles(config); err == nil && len(config.CAData) > 0 {
		if opened.Authorities, err = x509.SystemCertPool(); err != nil {
			opened.Authorities = x509.NewCertPool()
		}
		opened.Authorities.AppendCertsFromPEM(config.CAData)
	}
	return opened, nil
}

// Place is where an object is in the API.
type Place struct {
	API                               string // the path of the group and version, such as /apis/apps/v1; empty: /api/v1
	Namespace, Resource, Name, Within string // Within is a subresource
}

// in names the place in a request, which fails if a part of it is not one segment of a path.
func (p Place) in(request *rest.Request) *rest.Request {
	request.MaxRetries(0).AbsPath(cmp.Or(p.API, "/api/v1")).NamespaceIfScoped(p.Namespace, p.Namespace != "").Resource(p.Resource)
	if p.Name != "" {
		request.Name(p.Name)
	}
	if p.Within != "" {
		request.SubResource(p.Within)
	}
	return request
}

// ours reports whether Credence serves the place.
func (p Place) ours() bool {
	return p.API == identities || p.API == "/apis/"+identityv1alpha1.SchemeGroupVersion.String()
}

// exactly is in for an object that is sent whole: an older API server refuses fields that it would drop.
func (p Place) exactly(request *rest.Request) *rest.Request {
	if p.in(request); p.ours() {
		request.Param("fieldValidation", metav1.FieldValidationStrict)
	}
	return request
}

// Option changes a request.
type Option func(*rest.Request)

// DryRun has nothing kept.
func DryRun(request *rest.Request) { request.Param("dryRun", metav1.DryRunAll) }

// FieldManager has the objects record a name for what is written.
func FieldManager(name string) Option {
	return func(request *rest.Request) { request.Param("fieldManager", name) }
}

// Warnings hands the warnings of the server to a handler of this request.
func Warnings(handler rest.WarningHandler) Option {
	return func(request *rest.Request) { request.WarningHandler(handler) }
}

// Get reads an object.
func (a *API) Get(ctx context.Context, into any, at Place) error {
	return send(ctx, at.in(a.client.Get()), nil, into)
}

// Create posts an object, and reads the answer. It is not tried again: the client would do so on 503 until its deadline, and hide the
// reason of the failure.
func (a *API) Create(ctx context.Context, at Place, object, into any, options ...Option) error {
	return write(ctx, at.exactly(a.client.Post()).SetHeader("Content-Type", "application/json"), object, into, options)
}

// Update replaces an object, and reads the answer. An object of Credence that a newer version has stored stays as it is: see ErrNewer.
func (a *API) Update(ctx context.Context, at Place, object, into any, options ...Option) error {
	if _, whole := object.(runtime.Unstructured); at.ours() && !whole {
		stored := Exact[any]{reflect.New(reflect.TypeOf(object).Elem()).Interface()}
		if err := a.Get(ctx, &stored, at); err != nil {
			return err
		}
	}
	return write(ctx, at.exactly(a.client.Put()).SetHeader("Content-Type", "application/json"), object, into, options)
}

// Patch merges a patch into an object, and reads the answer.
func (a *API) Patch(ctx context.Context, at Place, patch, into any, options ...Option) error {
	return write(ctx, at.in(a.client.Patch(types.MergePatchType)), patch, into, options)
}

// Delete deletes an object.
func (a *API) Delete(ctx context.Context, at Place) error {
	return send(ctx, at.in(a.client.Delete()), nil, nil)
}

func write(ctx context.Context, request *rest.Request, object, into any, options []Option) error {
	for _, change := range options {
		change(request)
	}
	return send(ctx, request, object, into)
}

// send makes a request. An object that is nil is not sent, and nil reads no answer.
func send(ctx context.Context, request *rest.Request, object, into any) error {
	if object != nil {
		body, err := json.Marshal(object)
		if err != nil {
			return err
		}
		request.Body(append(body, '\n'))
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil || into == nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer to %s: %w", request.URL().Path, err)
	}
	return nil
}

const identities = "/apis/" + v1alpha1.GroupName + "/v1alpha1"

// Identity reads a WorkloadIdentity.
func (a *API) Identity(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	var identity v1alpha1.WorkloadIdentity
	err := a.Get(ctx, &identity, Place{API: identities, Namespace: namespace, Resource: "workloadidentities", Name: name})
	return &identity, err
}

// CreateToken requests a token of a WorkloadIdentity. The answer is the request with its status filled in.
func (a *API) CreateToken(ctx context.Context, namespace, name string, spec v1alpha1.TokenRequestSpec) (*v1alpha1.TokenRequest, error) {
	meta := metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TokenRequest"}
	var answer v1alpha1.TokenRequest
	at := Place{API: identities, Namespace: namespace, Resource: "workloadidentities", Name: name, Within: "token"}
	if err := a.Create(ctx, at, v1alpha1.TokenRequest{TypeMeta: meta, Spec: spec}, &answer); err != nil {
		return nil, err
	}
	answer.TypeMeta = meta
	return &answer, nil
}

// ServiceAccountUID looks up the uid of a service account.
func (a *API) ServiceAccountUID(ctx context.Context, namespace, name string) (types.UID, error) {
	return a.UID(ctx, Place{Namespace: namespace, Resource: "serviceaccounts", Name: name})
}

// UID looks up the uid of an object.
func (a *API) UID(ctx context.Context, at Place) (types.UID, error) {
	var object metav1.PartialObjectMetadata
	err := a.Get(ctx, &object, at)
	return object.UID, err
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
	return Listing{API: identities, Namespace: namespace, Resource: "workloadidentities"}
}

// IdentityNames are those of a namespace.
func (a *API) IdentityNames(ctx context.Context, namespace string) ([]string, error) {
	return a.Names(ctx, Identities(namespace))
}

// ServiceAccountNames are those of a namespace.
func (a *API) ServiceAccountNames(ctx context.Context, namespace string) ([]string, error) {
	return a.Names(ctx, Listing{Namespace: namespace, Resource: "serviceaccounts"})
}

// NamespaceNames are those of the cluster.
func (a *API) NamespaceNames(ctx context.Context, _ string) ([]string, error) {
	return a.Names(ctx, Listing{Resource: "namespaces"})
}

// WorkloadClusterNames are those that the cluster has as the identity cluster.
func (a *API) WorkloadClusterNames(ctx context.Context, _ string) ([]string, error) {
	return a.Names(ctx, Listing{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: "workloadclusters"})
}

// SecurityContextTemplateNames are those of the cluster.
func (a *API) SecurityContextTemplateNames(ctx context.Context, _ string) ([]string, error) {
	return a.Names(ctx, Listing{API: "/apis/" + accounts.SchemeGroupVersion.String(), Resource: "securitycontexttemplates"})
}

// ContextKindNames are the kinds of which ContextKinds make contexts of tokens, as words that Kind takes.
func (a *API) ContextKindNames(ctx context.Context, _ string) (names []string, err error) {
	err = a.eachContextKind(ctx, func(kind Kind) { names = append(names, kind.Title()) })
	return names, err
}

// ContextObjectNames are the names of the objects of such a kind, by its resource, with or without its group, or its kind.
func (a *API) ContextObjectNames(ctx context.Context, namespace, word string) ([]string, error) {
	kind, err := a.ContextKind(ctx, word)
	if errors.Is(err, ErrNoContextKind) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	at := kind.Place(namespace, "")
	return a.Names(ctx, Listing{API: at.API, Namespace: at.Namespace, Resource: at.Resource})
}

// ErrNoContextKind is the error of a word that is not that of one kind.
var ErrNoContextKind = errors.New("neither serviceaccount nor the kind of one ContextKind")

// ContextKind finds the kind of a ContextKind by its resource, with or without its group, or its kind.
func (a *API) ContextKind(ctx context.Context, word string) (Kind, error) {
	var found []Kind
	var known []string
	err := a.eachContextKind(ctx, func(kind Kind) {
		known = append(known, kind.Title())
		if word == kind.Title() || strings.EqualFold(word, kind.Resource) || strings.EqualFold(word, kind.Kind) {
			found = append(found, kind)
		}
	})
	switch {
	case err != nil:
		return Kind{}, err
	case len(found) != 1:
		return Kind{}, fmt.Errorf("%q is %w; of these there are: %s", word, ErrNoContextKind, cmp.Or(strings.Join(known, ", "), "none"))
	}
	return found[0], nil
}

func (a *API) eachContextKind(ctx context.Context, visit func(Kind)) error {
	return Each(ctx, a, Listing{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: "contextkinds"}, func(k *identityv1alpha1.ContextKind) {
		o := k.Spec.Object
		visit(Kind{schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}, o.Resource, o.Scope != identityv1alpha1.ScopeCluster})
	})
}

// Names are the names of the objects of a list.
func (a *API) Names(ctx context.Context, l Listing) (names []string, err error) {
	l.Metadata = true
	err = Each(ctx, a, l, func(object *metav1.PartialObjectMetadata) { names = append(names, object.Name) })
	return names, err
}
