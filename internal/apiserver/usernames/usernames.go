// Package usernames knows which service accounts have a username outside of the cluster. In go the profiles of the cluster, followed by a
// watch; out comes the username of an account, read live, or an error of the API where it can't be known. It gives no names: their record
// is the status of profiles.
package usernames

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/profile/username"
)

// usernameIndex is that of profiles by the key of the username that they have.
const usernameIndex = "username"

// Follower follows the profiles of a cluster.
type Follower struct {
	client   dynamic.NamespaceableResourceInterface
	informer cache.SharedIndexInformer
	log      *slog.Logger
	// unserved reports whether the cluster answered last that it has no such kind: then no account has a profile.
	unserved atomic.Bool
}

// New returns a Follower. Nothing is read before it runs.
func New(client dynamic.Interface, log *slog.Logger) (*Follower, error) {
	f := &Follower{client: client.Resource(accounts.SchemeGroupVersion.WithResource("serviceaccountprofiles")), log: log}
	f.informer = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := f.client.List(ctx, options)
			f.unserved.Store(apierrors.IsNotFound(err))
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return f.client.Watch(ctx, options)
		},
	}, client), &unstructured.Unstructured{}, 0, cache.Indexers{usernameIndex: func(object any) ([]string, error) {
		if p, ok := object.(*accounts.ServiceAccountProfile); ok && p.Status.Username != "" {
			return []string{username.Key(p.Status.Username)}, nil
		}
		return nil, nil
	}})
	if err := f.informer.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("follow profiles: %w", err)
	}
	if err := f.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if !apierrors.IsNotFound(err) {
			f.log.WarnContext(ctx, "profiles of service accounts can't be followed: tokens in the name of an account are refused until they can", "err", err)
		}
	}); err != nil {
		return nil, fmt.Errorf("follow profiles: %w", err)
	}
	return f, nil
}

// transform keeps of a profile what a username is decided by.
func transform(object any) (any, error) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	p, err := decode(content)
	if err != nil {
		return nil, err
	}
	return &accounts.ServiceAccountProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, CreationTimestamp: p.CreationTimestamp},
		Status:     accounts.ServiceAccountProfileStatus{Username: p.Status.Username},
	}, nil
}

func decode(content *unstructured.Unstructured) (*accounts.ServiceAccountProfile, error) {
	p := &accounts.ServiceAccountProfile{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, p); err != nil {
		return nil, fmt.Errorf("decode profile %s/%s: %w", content.GetNamespace(), content.GetName(), err)
	}
	return p, nil
}

// Run follows the profiles until ctx is done.
func (f *Follower) Run(ctx context.Context) { f.informer.RunWithContext(ctx) }

// HasSynced reports whether the profiles have been read, or the cluster has none.
func (f *Follower) HasSynced() bool { return f.informer.HasSynced() || f.unserved.Load() }

// Username returns the username of an account; empty if it has none. An account with a profile is looked up live: one whose profile was
// deleted has none any more.
func (f *Follower) Username(ctx context.Context, namespace, name string) (string, error) {
	if !f.informer.HasSynced() {
		if f.unserved.Load() {
			return "", nil
		}
		return "", unknown(namespace, name, "the profiles of the cluster have not been read yet")
	}
	cached, found, err := f.informer.GetIndexer().GetByKey(namespace + "/" + name)
	if err != nil {
		return "", unknown(namespace, name, err.Error())
	}
	if p, ok := cached.(*accounts.ServiceAccountProfile); !found || !ok || p.Status.Username == "" {
		return "", nil
	}
	content, err := f.client.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", unknown(namespace, name, err.Error())
	}
	p, err := decode(content)
	if err != nil {
		return "", unknown(namespace, name, err.Error())
	}
	if p.Status.Username == "" || p.DeletionTimestamp != nil {
		return "", nil
	}
	others, err := f.others(p)
	if err != nil {
		return "", unknown(namespace, name, err.Error())
	}
	if !claimOf(p).Holds(others) {
		return "", nil
	}
	return p.Status.Username, nil
}

// others are the claims of other profiles that have the username of one.
func (f *Follower) others(own *accounts.ServiceAccountProfile) ([]username.Claim, error) {
	found, err := f.informer.GetIndexer().ByIndex(usernameIndex, username.Key(own.Status.Username))
	if err != nil {
		return nil, err
	}
	var claims []username.Claim
	for _, object := range found {
		if p, ok := object.(*accounts.ServiceAccountProfile); ok && p.UID != own.UID {
			claims = append(claims, claimOf(p))
		}
	}
	return claims, nil
}

func claimOf(p *accounts.ServiceAccountProfile) username.Claim {
	return username.Claim{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Created: p.CreationTimestamp.Time, Has: p.Status.Username}
}

func unknown(namespace, name, why string) error {
	return unavailable.New("whether service account %s/%s has a username is not known: %s", namespace, name, why)
}
