package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of what decides about gMSA pods: deploy/base/61-gmsa-webhooks.yaml and 62-gmsa-guards.yaml.
const (
	gmsaMutating   = "zz-credence-gmsa"
	gmsaValidating = "credence-gmsa"
	gmsaPolicy     = "credence-gmsa"
)

// gmsaInstalled is what decides about gMSA pods in the plane.
type gmsaInstalled struct {
	mutating   registrationv1.MutatingWebhookConfiguration
	validating registrationv1.ValidatingWebhookConfiguration
	binding    registrationv1.ValidatingAdmissionPolicyBinding
}

func (w *world) gmsaInstalled(ctx context.Context) (*gmsaInstalled, error) {
	i := &gmsaInstalled{}
	for _, installed := range []struct {
		name string
		into ctrl.Object
	}{{gmsaMutating, &i.mutating}, {gmsaValidating, &i.validating}, {gmsaPolicy, &i.binding}} {
		if err := w.get(ctx, "", installed.name, installed.into); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// exempt has all of it leave the namespace alone until restore is called, so that something else can be in its place.
func (w *world) exempt(ctx context.Context, i *gmsaInstalled) (restore func(), err error) {
	mutating, validating, binding := i.mutating.DeepCopy(), i.validating.DeepCopy(), i.binding.DeepCopy()
	for n := range mutating.Webhooks {
		w.leaveOut(&mutating.Webhooks[n].NamespaceSelector)
	}
	for n := range validating.Webhooks {
		w.leaveOut(&validating.Webhooks[n].NamespaceSelector)
	}
	if binding.Spec.MatchResources == nil {
		binding.Spec.MatchResources = &registrationv1.MatchResources{}
	}
	w.leaveOut(&binding.Spec.MatchResources.NamespaceSelector)
	return w.change(ctx, change{i.mutating.DeepCopy(), mutating}, change{i.validating.DeepCopy(), validating}, change{i.binding.DeepCopy(), binding})
}

// change is an object of the cluster before and after a change.
type change struct{ before, after ctrl.Object }

// change makes changes; the function takes them back.
func (w *world) change(ctx context.Context, changes ...change) (restore func(), err error) {
	var restores []func()
	restore = func() {
		for _, r := range restores {
			r()
		}
	}
	for _, change := range changes {
		wanted := change.after.DeepCopyObject().(ctrl.Object)
		if err := w.objects.Patch(ctx, change.after, ctrl.MergeFrom(change.before)); err != nil {
			restore()
			return nil, err
		}
		restores = append(restores, func() {
			if err := w.objects.Patch(context.WithoutCancel(ctx), change.before, ctrl.MergeFrom(wanted)); err != nil {
				fmt.Fprintln(os.Stderr, "bench: give the plane its webhooks back:", err)
			}
		})
	}
	return restore, nil
}

func (w *world) leaveOut(selector **metav1.LabelSelector) {
	if *selector == nil {
		*selector = &metav1.LabelSelector{}
	}
	(*selector).MatchExpressions = append((*selector).MatchExpressions,
		metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{w.namespace}})
}

// here selects the namespace, and labelled the pods in it with one of some labels.
func (w *world) here() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}}
}

func labelled(by []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "bench", Operator: metav1.LabelSelectorOpIn, Values: by}}}
}

// registerGMSA has kube-apiserver ask a server about pods with a label, with the settings of the plane's own webhooks.
func (w *world) registerGMSA(ctx context.Context, i *gmsaInstalled, name string, urls gmsaURLs) (func(), error) {
	m := slices.IndexFunc(i.mutating.Webhooks, func(h registrationv1.MutatingWebhook) bool { return h.Name == "expander.gmsa.credence.dev" })
	v := slices.IndexFunc(i.validating.Webhooks, func(h registrationv1.ValidatingWebhook) bool { return h.Name == "authorizer.gmsa.credence.dev" })
	if m < 0 || v < 0 {
		return nil, fmt.Errorf("the plane has no webhooks for gMSA pods")
	}
	about := metav1.ObjectMeta{Name: w.namespace + "-" + name}
	mutating, validating := *i.mutating.Webhooks[m].DeepCopy(), *i.validating.Webhooks[v].DeepCopy()
	validating.ClientConfig.URL, validating.NamespaceSelector, validating.ObjectSelector = ptr.To(urls.validate), w.here(), labelled(urls.validated)
	configurations := []ctrl.Object{&registrationv1.ValidatingWebhookConfiguration{ObjectMeta: about, Webhooks: []registrationv1.ValidatingWebhook{validating}}}
	if urls.mutate != "" {
		mutating.ClientConfig.URL, mutating.NamespaceSelector, mutating.ObjectSelector = ptr.To(urls.mutate), w.here(), labelled(urls.mutated)
		configurations = append(configurations, &registrationv1.MutatingWebhookConfiguration{ObjectMeta: about, Webhooks: []registrationv1.MutatingWebhook{mutating}})
	}
	return w.install(ctx, configurations...)
}

// gmsaURLs are the URLs of a webhook, and the labels of the pods that it reviews; mutate may be empty.
type gmsaURLs struct {
	mutate, validate   string
	mutated, validated []string
}

// bindGMSA has the plane's policy decide about pods with a label.
func (w *world) bindGMSA(ctx context.Context, i *gmsaInstalled, by ...string) (func(), error) {
	return w.install(ctx, &registrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + i.binding.Name},
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: i.binding.Spec.PolicyName, ValidationActions: i.binding.Spec.ValidationActions,
			MatchResources: &registrationv1.MatchResources{NamespaceSelector: w.here(), ObjectSelector: labelled(by)},
		},
	})
}

// install creates objects of the cluster; the function removes them.
func (w *world) install(ctx context.Context, objects ...ctrl.Object) (remove func(), err error) {
	var created []ctrl.Object
	remove = func() {
		for _, o := range created {
			_ = w.objects.Delete(context.WithoutCancel(ctx), o)
		}
	}
	for _, o := range objects {
		if err := w.objects.Create(ctx, o); err != nil {
			remove()
			return nil, err
		}
		created = append(created, o)
	}
	return remove, nil
}
