package apiserver

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// FollowOwnPolicies has admission know only the policies and webhooks of the cluster whose rules name an API group of this server. No other one
// matches a request here; but admission would compare each of them with each request, which took a tenth of this server's CPU of a token.
func FollowOwnPolicies(o *options.RecommendedOptions) {
	next := o.ExtraAdmissionInitializers
	o.ExtraAdmissionInitializers = func(config *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
		followOwn(config.SharedInformerFactory, 10*time.Second)
		return next(config)
	}
}

// never is that a kind must be served.
const never time.Duration = 0

// followOwn comes before admission: a factory has one informer of a kind, the first that it was given. A cluster before 1.36 does not serve
// MutatingAdmissionPolicies as v1. They are requested again and again, because its control plane may be upgraded.
func followOwn(factory informers.SharedInformerFactory, again time.Duration) {
	constrains := func(constraints *admissionregistrationv1.MatchResources) bool {
		return constraints == nil || len(constraints.ResourceRules) == 0 ||
			slices.ContainsFunc(constraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool { return isOwn(r.Rule) })
	}
	follow(factory, again, func(policy *admissionregistrationv1.MutatingAdmissionPolicy) bool {
		return constrains(policy.Spec.MatchConstraints)
	}, func(client kubernetes.Interface) objects[*admissionregistrationv1.MutatingAdmissionPolicyList] {
		return client.AdmissionregistrationV1().MutatingAdmissionPolicies()
	})
	follow(factory, again, func(*admissionregistrationv1.MutatingAdmissionPolicyBinding) bool { return true },
		func(client kubernetes.Interface) objects[*admissionregistrationv1.MutatingAdmissionPolicyBindingList] {
			return client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
		})
	follow(factory, never, func(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		return constrains(policy.Spec.MatchConstraints)
	}, func(client kubernetes.Interface) objects[*admissionregistrationv1.ValidatingAdmissionPolicyList] {
		return client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	})
	hasOwn := func(rules []admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool { return isOwn(r.Rule) })
	}
	follow(factory, never, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return hasOwn(w.Rules) })
	}, func(client kubernetes.Interface) objects[*admissionregistrationv1.ValidatingWebhookConfigurationList] {
		return client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	})
	follow(factory, never, func(c *admissionregistrationv1.MutatingWebhookConfiguration) bool {
		return slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return hasOwn(w.Rules) })
	}, func(client kubernetes.Interface) objects[*admissionregistrationv1.MutatingWebhookConfigurationList] {
		return client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	})
}

// isOwn reports whether a rule names an API group of this server. The versions of a resource that matchPolicy Equivalent compares are all of one group.
func isOwn(rule admissionregistrationv1.Rule) bool {
	return slices.Contains(rule.APIGroups, "*") ||
		slices.ContainsFunc(GroupVersions(), func(served schema.GroupVersion) bool { return slices.Contains(rule.APIGroups, served.Group) })
}

// objects are those of one kind in the cluster.
type objects[List runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (List, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// follow gives a factory an informer that knows only the objects that keep is true for. A kind that the cluster has never served has no objects, and
// is requested again after a while; or, if that is never, is waited for.
func follow[T, L any, Object interface {
	*T
	runtime.Object
}, List interface {
	*L
	runtime.Object
}](factory informers.SharedInformerFactory, again time.Duration, keep func(Object) bool, of func(kubernetes.Interface) objects[List]) {
	factory.InformerFor(Object(new(T)), func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		var served atomic.Bool
		absent := func(err error) bool { return again != never && apierrors.IsNotFound(err) && !served.Load() }
		kept := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list, err := of(client).List(ctx, options)
				if absent(err) {
					return List(new(L)), nil
				}
				if err != nil {
					return nil, err
				}
				served.Store(true)
				all, err := meta.ExtractList(list)
				if err != nil {
					return nil, err
				}
				return list, meta.SetList(list, slices.DeleteFunc(all, func(o runtime.Object) bool { return !keep(o.(Object)) }))
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				all, err := of(client).Watch(ctx, options)
				// A watch that is to begin with a list gives way to a list.
				if absent(err) && options.SendInitialEvents == nil {
					return expiring(ctx, again), nil
				}
				if err != nil {
					return nil, err
				}
				served.Store(true)
				return watch.Filter(all, func(event watch.Event) (watch.Event, bool) {
					object, ok := event.Object.(Object)
					if !ok || event.Type == watch.Bookmark || keep(object) {
						return event, true
					}
					added := event.Type == watch.Added
					event.Type = watch.Deleted // it may have been kept before
					return event, !added
				}), nil
			},
		}
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(kept, client), Object(new(T)), resync, cache.Indexers{})
	})
}

// expiring is a watch that has nothing to tell, and after a while wants a new list.
func expiring(ctx context.Context, after time.Duration) watch.Interface {
	events := make(chan watch.Event)
	quiet := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		expired := apierrors.NewResourceExpired("the cluster did not serve this kind").Status()
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		case <-quiet.StopChan():
			return
		}
		select {
		case events <- watch.Event{Type: watch.Error, Object: &expired}:
		case <-ctx.Done():
		case <-quiet.StopChan():
		}
	}()
	return quiet
}
