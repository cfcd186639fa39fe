package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/liveread"
)

// LiveServiceAccounts reads service accounts from the API each time, and never from a cache, which may not know of one that
// was annotated a moment before its pod. Reads of one account are made one after the other, and serve all waiting callers.
func LiveServiceAccounts(client kubernetes.Interface) ServiceAccounts {
	return &liveAccounts{client: client}
}

type liveAccounts struct {
	client kubernetes.Interface
	reads  liveread.Reads[types.NamespacedName, *corev1.ServiceAccount]
}

func (l *liveAccounts) Get(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return l.reads.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, func(ctx context.Context) (*corev1.ServiceAccount, error) {
		return l.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// LiveProfiles reads profiles and their templates likewise.
func LiveProfiles(config *rest.Config) (Profiles, error) {
	scheme := runtime.NewScheme()
	if err := accounts.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &accounts.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &liveProfiles{client: client}, nil
}

type liveProfiles struct {
	client    rest.Interface
	profiles  liveread.Reads[types.NamespacedName, *accounts.ServiceAccountProfile]
	templates liveread.Reads[string, *accounts.SecurityContextTemplate]
}

func (l *liveProfiles) Profile(ctx context.Context, namespace, name string) (*accounts.ServiceAccountProfile, error) {
	return l.profiles.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, func(ctx context.Context) (*accounts.ServiceAccountProfile, error) {
		profile := &accounts.ServiceAccountProfile{}
		return profile, l.client.Get().Namespace(namespace).Resource("serviceaccountprofiles").Name(name).Do(ctx).Into(profile)
	})
}

func (l *liveProfiles) Template(ctx context.Context, name string) (*accounts.SecurityContextTemplate, error) {
	return l.templates.Get(ctx, name, func(ctx context.Context) (*accounts.SecurityContextTemplate, error) {
		template := &accounts.SecurityContextTemplate{}
		return template, l.client.Get().Resource("securitycontexttemplates").Name(name).Do(ctx).Into(template)
	})
}

// LiveWorkloads reads ReplicaSets and ReplicationControllers, each time.
func LiveWorkloads(client kubernetes.Interface) Workloads { return liveWorkloads{client} }

type liveWorkloads struct{ client kubernetes.Interface }

func (l liveWorkloads) Get(ctx context.Context, resource, namespace, name string) ([]byte, error) {
	client := l.client.AppsV1().RESTClient()
	if resource == "replicationcontrollers" {
		client = l.client.CoreV1().RESTClient()
	}
	return client.Get().SetHeader("Accept", runtime.ContentTypeJSON).Namespace(namespace).Resource(resource).Name(name).Do(ctx).Raw()
}

// LiveRuntimeClasses reads RuntimeClasses likewise.
func LiveRuntimeClasses(client kubernetes.Interface) RuntimeClasses {
	return &live[*nodev1.RuntimeClass]{get: client.NodeV1().RuntimeClasses().Get}
}

// LiveNamespaces reads namespaces likewise.
func LiveNamespaces(client kubernetes.Interface) Namespaces {
	return &live[*corev1.Namespace]{get: client.CoreV1().Namespaces().Get}
}

// live reads objects that are in no namespace.
type live[Object any] struct {
	get   func(ctx context.Context, name string, options metav1.GetOptions) (Object, error)
	reads liveread.Reads[string, Object]
}

func (l *live[Object]) Get(ctx context.Context, name string) (Object, error) {
	return l.reads.Get(ctx, name, func(ctx context.Context) (Object, error) { return l.get(ctx, name, metav1.GetOptions{}) })
}
