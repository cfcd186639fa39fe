package pods

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/tokensecret"
)

// userRole is the role that lets a service account use identities; deploy/base installs it.
const userRole = "credence:workloadidentities:user"

// granters names the people who may run the command that follows; deploy/base installs their role.
const granters = "a cluster admin, or a person with ClusterRole credence:workloadidentities:granter in that namespace, allows it with: "

// Names returns the identities that a service account gives its pods, in the order of its annotation.
func Names(account *corev1.ServiceAccount) ([]string, *Denial) {
	names, err := tokensecret.ParseIdentities(account.Annotations[v1alpha1.AnnotationAccountIdentities])
	if err != nil {
		return nil, decision.Invalid(fmt.Sprintf("annotation %s of service account %s/%s %s: a user who may update service accounts there corrects it with: kubectl annotate serviceaccount %s -n %s --overwrite %s=NAME[,NAME...]",
			v1alpha1.AnnotationAccountIdentities, account.Namespace, account.Name, err, account.Name, account.Namespace, v1alpha1.AnnotationAccountIdentities))
	}
	return names, nil
}

// NamesOf returns those of a service account with a profile, which has them in place of the annotation.
func NamesOf(account *corev1.ServiceAccount, p profile.Profile) ([]string, *Denial) {
	if p.Spec.WorkloadIdentities == nil {
		return Names(account)
	}
	if ListsTwice(account.Annotations, p) {
		return p.Spec.WorkloadIdentities, decision.Invalid(fmt.Sprintf("service account %s/%s lists workload identities in its annotation %s and in spec.workloadIdentities of %s, and only one of them may: a user who may update service accounts there takes the annotation off with: kubectl annotate serviceaccount %s -n %s %s-",
			account.Namespace, account.Name, v1alpha1.AnnotationAccountIdentities, p, account.Name, account.Namespace, v1alpha1.AnnotationAccountIdentities))
	}
	return p.Spec.WorkloadIdentities, nil
}

// ListsTwice reports whether the annotations of an account and its profile both list workload identities.
func ListsTwice(annotations map[string]string, p profile.Profile) bool {
	return p.Spec.WorkloadIdentities != nil && strings.TrimSpace(annotations[v1alpha1.AnnotationAccountIdentities]) != ""
}

// list names the place where the identities of a request are listed.
func list(r Request) string {
	if r.Profile.Spec.WorkloadIdentities != nil {
		return "spec.workloadIdentities of " + r.Profile.String()
	}
	return fmt.Sprintf("annotation %s of service account %s/%s", v1alpha1.AnnotationAccountIdentities, r.Namespace, r.Account.Name)
}

func kindOfList(r Request) string {
	if r.Profile.Spec.WorkloadIdentities != nil {
		return "profile"
	}
	return "annotation"
}

func noIdentities(r Request) string {
	return fmt.Sprintf("the pod gets none of the workload identities of %s, as namespace %s has no label %s=%s: a cluster admin sets it with: kubectl label namespace %s %s=%s",
		r.Profile, r.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled, r.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
}

func accountMissing(namespace, name string) *Denial {
	return decision.Forbidden(fmt.Sprintf("service account %s/%s does not exist: set spec.serviceAccountName of the pod to one that does, or have a user who may create service accounts there create it with: kubectl create serviceaccount %s -n %s",
		namespace, name, name, namespace))
}

// grant is an identity that a pod may have, and what the pod needs for it.
type grant struct {
	identity  string
	place     target.Place
	injection target.Injection
	volume    corev1.Volume
	files     []file
}

// grantOf refuses an identity that the pod may not or can not have.
func grantOf(r Request, identity Identity, s settings) (grant, *Denial) {
	switch {
	case !identity.Exists:
		return grant{}, decision.Forbidden(fmt.Sprintf("workload identity %q, named in %s, does not exist in namespace %s: create it, or take its name off the %s",
			identity.Name, list(r), r.Namespace, kindOfList(r))).OfAbsent()
	case !identity.Allowed:
		return grant{}, decision.Forbidden(notAllowed(r, identity))
	case identity.Deleting:
		return grant{}, decision.Forbidden(fmt.Sprintf("workload identity %s/%s is being deleted, and gets no new tokens: take its name off %s, or create it again once it is gone",
			r.Namespace, identity.Name, list(r)))
	}
	config, problems := r.Adapters(identity.Type).Parse(identity.ProviderConfig, field.NewPath("spec", "targetSystem", "providerConfig"))
	if len(problems) > 0 {
		return grant{}, decision.Invalid(fmt.Sprintf("workload identity %s/%s has a providerConfig that target system %s does not take: %s: a user who may update workload identities there corrects it with: kubectl edit workloadidentity %s -n %s",
			r.Namespace, identity.Name, identity.Type, problems.ToAggregate(), identity.Name, r.Namespace))
	}
	g := grant{identity: identity.Name, place: target.PodPlace(s.os, s.mountPath, identity.Name)}
	g.injection = config.Injection(g.place)
	if r.Delivery == v1alpha1.DeliveryCSI {
		if _, problem := ParseMountPath(g.place.Dir, s.os); problem != "" {
			return grant{}, decision.Invalid(fmt.Sprintf("the folder of workload identity %q in containers %s: give a shorter path with annotation %s of the pod", identity.Name, problem, v1alpha1.AnnotationMountPath))
		}
		g.volume = csiVolumeOf(g, s.standard())
		return g, nil
	}
	g.volume, g.files = volumeOf(r.Account.Name, g, s.standard())
	return g, nil
}

func notAllowed(r Request, identity Identity) string {
	detail := ""
	if identity.Detail != "" {
		detail = " (" + identity.Detail + ")"
	}
	return fmt.Sprintf("service account %s/%s may not use workload identity %q%s: %skubectl create rolebinding use-workloadidentities-%s --clusterrole=%s --serviceaccount=%s:%s -n %s",
		r.Namespace, r.Account.Name, identity.Name, detail, granters, r.Account.Name, userRole, r.Namespace, r.Account.Name, r.Namespace)
}
