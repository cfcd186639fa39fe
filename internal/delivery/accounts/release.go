package accounts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// ReleasedLook is how often the agent looks whether pods still mount a Secret that their account has released.
const ReleasedLook = time.Minute

// release sees to the Secrets of identities that the account does not name any more, or that its pods have without Secrets now: one that pods mount stays, marked, and is kept
// fresh, as these pods would otherwise be left with a token that expires. Without pods it is deleted at a later look than the one that
// marked it: a pod may just have been admitted, and not be there yet. stay are the marks of those that do, by identity.
func (a *Controller) release(ctx context.Context, account *metav1.PartialObjectMetadata, listed, wanted []string, kept map[string]*corev1.Secret, pods func() ([]corev1.Pod, error)) (problems []problem, stay map[string]string) {
	stay = map[string]string{}
	var unread error
	for name, secret := range kept {
		if slices.Contains(wanted, name) {
			if err := a.mark(ctx, secret, ""); err != nil {
				problems = append(problems, problem{"SecretNotMarked", fmt.Sprintf("take the mark off Secret %s: %v", secret.Name, err)})
			}
			continue
		}
		mark := secret.Annotations[v1alpha1.AnnotationReleased]
		since, err := time.Parse(time.RFC3339, mark)
		marked := err == nil
		if !marked {
			mark = a.Clock.Now().UTC().Format(time.RFC3339)
		}
		stay[name] = mark
		all, err := pods()
		if err != nil {
			unread = err
			continue
		}
		users := usersOf(secret.Name, all)
		if len(users) == 0 && marked && a.Clock.Since(since) >= ReleasedLook {
			delete(stay, name)
			problems = append(problems, a.remove(ctx, account, secret)...)
			continue
		}
		if marked {
			continue
		}
		if err := a.mark(ctx, secret, mark); err != nil {
			problems = append(problems, problem{"SecretNotMarked", fmt.Sprintf("mark Secret %s as released: %v", secret.Name, err)})
			continue
		}
		switch {
		case len(users) == 0:
		case slices.Contains(listed, name):
			a.reportMoved(account, name, users)
		default:
			a.reportReleased(account, name, users)
		}
	}
	if unread != nil {
		problems = append(problems, unreadable(unread))
	}
	return problems, stay
}

// released are the marks of Secrets that an account with a uid has released, by identity.
type released struct {
	uid   types.UID
	marks map[string]string
}

// remember keeps which Secrets of released identities there are: nothing in the cluster has that once one is deleted, as a pod may name any.
func (a *Controller) remember(account *metav1.PartialObjectMetadata, marks map[string]string) {
	key := client.ObjectKeyFromObject(account)
	if len(marks) == 0 {
		a.released.Delete(key)
		return
	}
	a.released.Store(key, released{account.UID, marks})
}

// restore makes Secrets of released identities again that were deleted while pods mount them. lost are the marks of those that
// pods still need. Where the label went, the agent gives back its right to Secrets with the last of them: there it only writes an Event.
func (a *Controller) restore(ctx context.Context, account *metav1.PartialObjectMetadata, on bool, wanted []string, kept map[string]*corev1.Secret, pods func() ([]corev1.Pod, error)) (problems []problem, lost map[string]string) {
	value, _ := a.released.Load(client.ObjectKeyFromObject(account))
	before, _ := value.(released)
	if before.uid != account.UID {
		return nil, nil
	}
	lost = map[string]string{}
	for name, mark := range before.marks {
		if kept[name] == nil && !slices.Contains(wanted, name) {
			lost[name] = mark
		}
	}
	if len(lost) == 0 || on && !a.Serves(account.Namespace) {
		return nil, lost // one that is not served shows no Secrets
	}
	all, err := pods()
	if err != nil && on {
		return []problem{unreadable(err)}, lost
	}
	for name, mark := range lost {
		secret := tokensecret.NameFor(account.Name, name)
		switch {
		case err == nil && len(usersOf(secret, all)) == 0:
			delete(lost, name)
		case !on:
			delete(lost, name)
			a.Events.Workload.Eventf(workload.Reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, "SecretLost",
				"Secret %s with tokens of WorkloadIdentity %s/%s was deleted, or the agent's right to it, and namespace %s has no label: it does not come again, and pods that mount it keep a token that expires; create them anew, or have a cluster admin run: kubectl label namespace %s %s=%s",
				secret, account.Namespace, name, account.Namespace, account.Namespace, v1alpha1.LabelNamespaceIdentities, v1alpha1.NamespaceEnabled)
		default:
			if p := a.createOne(ctx, account, types.NamespacedName{Namespace: account.Namespace, Name: name}, mark); p != nil {
				problems = append(problems, *p)
			}
		}
	}
	return problems, lost
}

func unreadable(err error) problem {
	return problem{"PodsUnreadable", fmt.Sprintf("look which pods still need Secrets that no new pod of the account does: %v", err)}
}

// usersOf are those of pods that mount a Secret.
func usersOf(secret string, pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !slices.Contains(workload.TokenSecrets(&pod), secret) })
}

// mark writes since when a Secret is released; empty: it is not.
func (a *Controller) mark(ctx context.Context, secret *corev1.Secret, since string) error {
	if secret.Annotations[v1alpha1.AnnotationReleased] == since {
		return nil
	}
	out := secret.DeepCopy()
	if out.Annotations[v1alpha1.AnnotationReleased] = since; since == "" {
		delete(out.Annotations, v1alpha1.AnnotationReleased)
	}
	return client.IgnoreNotFound(a.Client.Patch(ctx, out, client.MergeFrom(secret)))
}

// remove deletes a Secret that nothing needs any more.
func (a *Controller) remove(ctx context.Context, account *metav1.PartialObjectMetadata, secret *corev1.Secret) []problem {
	err := a.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return []problem{{"SecretNotDeleted", fmt.Sprintf("delete Secret %s, which is not needed any more: %v", secret.Name, err)}}
	}
	a.Log.InfoContext(ctx, "Secret deleted: no new pod of the service account needs it any more, and no pod mounts it", "secret", secret.Namespace+"/"+secret.Name, "serviceAccount", account.Name)
	return nil
}

// maxReleasedPods bounds the Events on pods.
const maxReleasedPods = 20

// reportReleased writes Events on the account, and on pods that still mount the Secret of an identity.
func (a *Controller) reportReleased(account *metav1.PartialObjectMetadata, identity string, users []corev1.Pod) {
	what, verb := "1 pod", "needs"
	if len(users) != 1 {
		what, verb = strconv.Itoa(len(users))+" pods", "need"
	}
	key := client.ObjectKeyFromObject(account)
	stop := fmt.Sprintf("to stop delivery at once, take the right to use it away from service account %s", key)
	a.Events.Workload.Eventf(workload.Reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, "IdentityReleased",
		"the account gives new pods no tokens of WorkloadIdentity %s/%s any more, but %s still %s them: the Secret stays and is renewed until the last of them is gone; %s",
		account.Namespace, identity, what, verb, stop)
	for i := range users[:min(len(users), maxReleasedPods)] {
		pod := &users[i]
		a.Events.Workload.Eventf(workload.Reference("v1", "Pod", pod.Namespace, pod.Name, string(pod.UID)), corev1.EventTypeWarning, "IdentityReleased",
			"service account %s gives new pods no tokens of WorkloadIdentity %s/%s any more; this pod keeps them, fresh, for as long as it runs; %s",
			account.Name, account.Namespace, identity, stop)
	}
}

// reportMoved writes Events on the account, and on pods that mount the Secret of an identity while new ones have volumes without Secrets.
func (a *Controller) reportMoved(account *metav1.PartialObjectMetadata, identity string, users []corev1.Pod) {
	a.Events.Workload.Eventf(workload.Reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeNormal, "DeliveryChanged",
		"new pods of the account have tokens of WorkloadIdentity %s/%s in volumes without Secrets; %s the Secret, which stays and is renewed until the last of them is restarted",
		account.Namespace, identity, wording.Plural(len(users), "pod still mounts", "pods still mount"))
	for i := range users[:min(len(users), maxReleasedPods)] {
		pod := &users[i]
		a.Events.Workload.Eventf(workload.Reference("v1", "Pod", pod.Namespace, pod.Name, string(pod.UID)), corev1.EventTypeNormal, "DeliveryChanged",
			"new pods of service account %s have tokens of WorkloadIdentity %s/%s in volumes without Secrets; this pod keeps its Secret, and has such a volume once it is restarted",
			account.Name, account.Namespace, identity)
	}
}

// PodsOf lists the pods of service accounts that have not ended. It lists live: the cache has only pods without a node.
func PodsOf(reader client.Reader) func(context.Context, types.NamespacedName) ([]corev1.Pod, error) {
	return func(ctx context.Context, account types.NamespacedName) ([]corev1.Pod, error) {
		var pods corev1.PodList
		selector := fields.ParseSelectorOrDie(strings.Join([]string{"spec.serviceAccountName=" + account.Name, "status.phase!=Succeeded", "status.phase!=Failed"}, ","))
		err := reader.List(ctx, &pods, client.InNamespace(account.Namespace), client.MatchingFieldsSelector{Selector: selector})
		return pods.Items, err
	}
}
