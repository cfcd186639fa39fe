package nodereview

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/admission/facts"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/gmsa"
)

// Live reads from the cluster each time, and has its authorizer review rights. It has no source of identities.
func Live(client dynamic.Interface, reviewer authorizer.UnconditionalAuthorizer) Config {
	return Config{
		Pod: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return read[corev1.Pod](ctx, client, corev1.SchemeGroupVersion.WithResource("pods"), namespace, name)
		},
		Sources: drift.Sources{
			Labels: func(ctx context.Context, name string) (map[string]string, error) {
				namespace, err := read[corev1.Namespace](ctx, client, corev1.SchemeGroupVersion.WithResource("namespaces"), "", name)
				if err != nil {
					return nil, err
				}
				return namespace.Labels, nil
			},
			Spec: func(ctx context.Context, name string) (gmsa.Spec, error) {
				object, err := client.Resource(windowsv1.SchemeGroupVersion.WithResource(windowsv1.ResourceName)).Get(ctx, name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return gmsa.Spec{}, nil
				}
				if err != nil {
					return gmsa.Spec{}, fmt.Errorf("read GMSACredentialSpec %s: %w", name, err)
				}
				return gmsa.SpecOf(object.Object["credspec"]), nil
			},
			Sources: facts.Sources{
				ServiceAccount: func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
					return read[corev1.ServiceAccount](ctx, client, corev1.SchemeGroupVersion.WithResource("serviceaccounts"), namespace, name)
				},
				Profile: func(ctx context.Context, namespace, name string) (*accounts.ServiceAccountProfile, error) {
					return read[accounts.ServiceAccountProfile](ctx, client, accounts.SchemeGroupVersion.WithResource("serviceaccountprofiles"), namespace, name)
				},
				Template: func(ctx context.Context, name string) (*accounts.SecurityContextTemplate, error) {
					return read[accounts.SecurityContextTemplate](ctx, client, accounts.SchemeGroupVersion.WithResource("securitycontexttemplates"), "", name)
				},
				Nodes: func(ctx context.Context, name string) (map[string]string, error) {
					class, err := read[nodev1.RuntimeClass](ctx, client, nodev1.SchemeGroupVersion.WithResource("runtimeclasses"), "", name)
					if err != nil || class.Scheduling == nil {
						return nil, err
					}
					return class.Scheduling.NodeSelector, nil
				},
				Right: func(ctx context.Context, q authority.Question) (authority.Answer, error) {
					subject := &user.DefaultInfo{Name: q.Subject.Name, UID: q.Subject.UID, Groups: q.Subject.Groups}
					allowed, err := rights.Granted(ctx, reviewer, subject, q.Verb, q.Object)
					return authority.Answer{Allowed: allowed}, err
				},
			},
		},
	}
}

func read[Object any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace, name string) (*Object, error) {
	var api dynamic.ResourceInterface = client.Resource(resource)
	if namespace != "" {
		api = client.Resource(resource).Namespace(namespace)
	}
	content, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", resource.Resource, name, err)
	}
	object := new(Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, object); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", resource.Resource, name, err)
	}
	return object, nil
}
