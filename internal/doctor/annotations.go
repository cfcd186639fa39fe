package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// annotations is what checkAnnotations has found.
type annotations struct {
	found *Diagnosis
	// enabled are the namespaces whose service accounts give identities; nil if they could not be listed.
	enabled map[string]bool
	// mirrored are the namespaces with pods of kubelets' own files.
	mirrored map[string]bool
	looked   int
	now      time.Time
	// young are the service accounts with identities of which kubelets may still have tokens of namesakes.
	young []*metav1.PartialObjectMetadata

	values, deliveries, unread, invalid, unserved, pulling []string
}

// checkAnnotations looks for labels and annotations that have no effect, in a namespace, or in all of them where it is empty. It returns the
// namespaces whose service accounts give identities, nil if they are not known, and those with pods of kubelets' own files.
func (d *Examination) checkAnnotations(ctx context.Context, found *Diagnosis, workload *cluster.API, namespace, home string) (enabled, mirrored map[string]bool) {
	a := &annotations{found: found, now: d.Now(), enabled: map[string]bool{}, mirrored: map[string]bool{}}
	err := cluster.Each(ctx, workload, cluster.Listing{Resource: "namespaces", Metadata: true}, func(o *metav1.PartialObjectMetadata) {
		value, labeled := o.Labels[v1alpha1.LabelNamespaceIdentities]
		a.enabled[o.Name] = value == v1alpha1.NamespaceEnabled
		if namespace != "" && o.Name != namespace {
			return
		}
		if a.keys("namespaces", o); labeled && !a.enabled[o.Name] {
			a.values = append(a.values, fmt.Sprintf("%s (%q)", o.Name, value))
		}
		if delivery, chosen := o.Labels[v1alpha1.LabelNamespaceDelivery]; chosen && !slices.Contains(v1alpha1.Deliveries(), delivery) {
			a.deliveries = append(a.deliveries, fmt.Sprintf("%s (%q)", o.Name, delivery))
		}
	})
	if apierrors.IsForbidden(err) {
		a.enabled = nil
	}
	if !a.read("namespaces", err) {
		return nil, nil
	}
	if _, there := a.enabled[namespace]; namespace != "" && a.enabled != nil && !there {
		found.add("annotations", Warn, "see which there are: kubectl get namespaces", "namespace %s does not exist in the cluster of the pods: nothing of it was checked", namespace)
	}
	checkBinder(ctx, found, workload, namespace, a.enabled)
	for _, resource := range []string{"serviceaccounts", "pods"} {
		look := func(in string) error {
			return cluster.Each(ctx, workload, cluster.Listing{Namespace: in, Resource: resource, Metadata: true}, func(o *metav1.PartialObjectMetadata) {
				if a.keys(resource, o); resource == "serviceaccounts" {
					a.account(o)
				} else if _, found := o.Annotations[corev1.MirrorPodAnnotationKey]; found {
					a.mirrored[o.Namespace] = true
				}
			})
		}
		if namespace != "" {
			err = look(namespace)
		} else {
			var where cluster.Scope
			if where, err = cluster.Widest(resource, home, look); where.Note != "" {
				found.skip("annotations", "%s", where.Note)
			}
		}
		if !a.read(resource, err) {
			return a.enabled, nil
		}
	}
	a.report()
	a.recreated(ctx, workload)
	return a.enabled, a.mirrored
}

// recreated looks for pods that are older than their service account.
func (a *annotations) recreated(ctx context.Context, workload *cluster.API) {
	var pods []string
	for _, account := range a.young {
		err := cluster.Each(ctx, workload, cluster.Listing{Namespace: account.Namespace, Resource: "pods", Fields: "status.phase!=Succeeded,status.phase!=Failed,spec.serviceAccountName=" + account.Name, Metadata: true}, func(pod *metav1.PartialObjectMetadata) {
			if explain.Outlived(account, pod) {
				pods = append(pods, pod.Namespace+"/"+pod.Name)
			}
		})
		if !a.read("pods", err) {
			return
		}
	}
	if len(pods) > 0 {
		a.found.add("accounts", Warn, "a user who may update their workloads restarts them: kubectl rollout restart; or deletes the pods",
			"pods are older than their service account, which was deleted and created again: tokens of the deleted account are refused: %s", wording.Some(pods))
	}
}

// read notes what could not be looked at, and reports whether the checks can go on.
func (a *annotations) read(resource string, err error) bool {
	if err != nil && !skipped(a.found, "annotations", "list "+resource, err) {
		a.found.add("annotations", Fail, "", "list %s: %v", resource, err)
		return false
	}
	return true
}

func (a *annotations) account(o *metav1.PartialObjectMetadata) {
	if name, present := o.Annotations[v1alpha1.AnnotationImagePullIdentity]; present && len(validation.IsDNS1123Subdomain(name)) > 0 {
		a.pulling = append(a.pulling, fmt.Sprintf("%s/%s (%q)", o.Namespace, o.Name, wording.Abbreviate(name)))
	}
	text := o.Annotations[v1alpha1.AnnotationAccountIdentities]
	names, err := tokensecret.ParseIdentities(text)
	switch {
	case err != nil:
		a.invalid = append(a.invalid, fmt.Sprintf("%s/%s %v", o.Namespace, o.Name, err))
	case len(names) > 0 && a.enabled != nil && !a.enabled[o.Namespace]:
		a.unserved = append(a.unserved, o.Namespace+"/"+o.Name)
	case len(names) > 0 && explain.MadeLately(o, a.now):
		a.young = append(a.young, o)
	}
}

// keys notes the labels and annotations of an object that nothing reads.
func (a *annotations) keys(resource string, o *metav1.PartialObjectMetadata) {
	a.looked++
	a.unread = append(a.unread, explain.UnreadKeys(resource, o)...)
}

func (a *annotations) report() {
	const label = v1alpha1.LabelNamespaceIdentities + "=" + v1alpha1.NamespaceEnabled
	before := len(a.found.Findings)
	add := func(list []string, verdict, hint, what string) {
		if slices.Sort(list); len(list) > 0 {
			a.found.add("annotations", verdict, hint, "%s: %s", what, wording.Some(list))
		}
	}
	add(a.values, Fail, "a cluster admin runs: kubectl label namespace NAME --overwrite "+label, "the label "+v1alpha1.LabelNamespaceIdentities+" has no effect with another value than "+v1alpha1.NamespaceEnabled)
	const delivery = v1alpha1.LabelNamespaceDelivery + "=" + v1alpha1.DeliverySecret
	add(a.deliveries, Fail, "a cluster admin runs: kubectl label namespace NAME --overwrite "+delivery+", or ="+v1alpha1.DeliveryCSI, "the label "+v1alpha1.LabelNamespaceDelivery+" has another value than "+v1alpha1.DeliverySecret+" and "+v1alpha1.DeliveryCSI+", for which pods are refused")
	add(a.unserved, Fail, "a cluster admin runs: credence enable NAMESPACE; or take the annotation away", "service accounts list identities in namespaces without the label "+label+", so that their pods get none")
	add(a.invalid, Fail, "a user who may update service accounts there runs: kubectl annotate serviceaccount NAME -n NAMESPACE --overwrite "+v1alpha1.AnnotationAccountIdentities+"=NAME[,NAME...]", "annotations that can't be understood, for which pods are refused")
	add(a.pulling, Fail, "a user who may update service accounts there runs: kubectl annotate serviceaccount NAME -n NAMESPACE --overwrite "+v1alpha1.AnnotationImagePullIdentity+"=NAME", "the annotation "+v1alpha1.AnnotationImagePullIdentity+" is not the name of an identity, so that no image is pulled by it")
	add(a.unread, Warn, "see docs/reference/labels-and-annotations.md", "keys that nothing reads")
	if len(a.found.Findings) == before && a.looked > 0 {
		a.found.pass("annotations", "those of %s have an effect, or are not Credence's", wording.Plural(a.looked, "object", "objects"))
	}
}
