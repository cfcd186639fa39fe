package apiserver

import (
	"context"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
		followOwn(config.SharedInformerFactory)
		return next(config)
	}
}

// followOwn comes before admission: a factory has one informer of a kind, the first that it was given.
func followOwn(factory informers.SharedInformerFactory) {
	follow(factory, func(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		constraints := policy.Spec.MatchConstraints
		return constraints == nil || len(constraints.ResourceRules) == 0 ||
			slices.ContainsFunc(constraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool { return isOwn(r.Rule) })
	}, func(client kubernetes.Interface) objects[*admissionregistrationv1.ValidatingAdmissionPolicyList] {
		return client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	})
	hasOwn := func(rules []admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool { return isOwn(r.Rule) })
	}
	follow(factory, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return hasOwn(w.Rules) })
	}, func(client kubernetes.Interface) objects[*admissionregistrationv1.ValidatingWebhookConfigurationList] {
		return client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	})
	follow(factory, func(c *admissionregistrationv1.MutatingWebhookConfiguration) bool {
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

// follow gives a factory an informer that knows only the objects that keep is true for.
func follow[T any, Object interface {
	*T
	runtime.Object
}, List runtime.Object](factory informers.SharedInformerFactory, keep func(Object) bool, of func(kubernetes.Interface) objects[List]) {
	factory.InformerFor(Object(new(T)), func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		kept := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list, err := of(client).List(ctx, options)
				if err != nil {
					return nil, err
				}
				all, err := meta.ExtractList(list)
				if err != nil {
					return nil, err
				}
				return list, meta.SetList(list, slices.DeleteFunc(all, func(o runtime.Object) bool { return !keep(o.(Object)) }))
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				all, err := of(client).Watch(ctx, options)
				if err != nil {
					return nil, err
				}
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
