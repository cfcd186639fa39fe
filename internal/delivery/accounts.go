package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/tokensecret"
)

// accounts keeps one Secret for each identity that a service account gives its pods, and besides only those that pods still mount.
type accounts struct {
	client     client.Client
	live       client.Reader
	identities Identities
	reviews    authority.Reviewer
	clock      clock.PassiveClock
	random     func() float64
	events     Events
	renewals   *renewals
	// queue makes the requestor look at a Secret.
	queue func(types.NamespacedName, time.Duration)
	// serves reports whether the agent has the Secrets of a namespace.
	serves   func(namespace string) bool
	failures *ledger
	// pods lists the pods of a service account that have not ended.
	pods func(ctx context.Context, account types.NamespacedName) ([]corev1.Pod, error)
	log  *slog.Logger
}

// Reconcile handles one service account. It returns no errors of the API: its own waits cover them.
func (a *accounts) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	account := newAccount()
	if err := a.client.Get(ctx, request.NamespacedName, account); err != nil {
		if client.IgnoreNotFound(err) == nil {
			a.failures.forget(request.NamespacedName)
			a.renewals.end(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if account.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	kept, err := a.secrets(ctx, account)
	if err != nil {
		return reconcile.Result{}, err
	}
	on, err := enabled(ctx, a.client, account.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	var wanted []string
	if on {
		if wanted, err = tokensecret.ParseIdentities(account.Annotations[v1alpha1.AnnotationAccountIdentities]); err != nil {
			a.warn(account, problem{"InvalidAnnotation", fmt.Sprintf("annotation %s %v", v1alpha1.AnnotationAccountIdentities, err)})
			// The Secrets stay: an annotation that cannot be read is not an order to delete. The account is read again, because no event comes when the annotation goes.
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	if len(wanted) > 0 && !a.serves(account.Namespace) {
		return reconcile.Result{RequeueAfter: a.unserved(account)}, nil
	}
	problems := a.create(ctx, account, wanted, kept)
	unreleased, waiting := a.release(ctx, account, wanted, kept)
	problems = append(problems, unreleased...)
	if err := a.renewAll(ctx, account, kept, wanted); err != nil {
		problems = append(problems, problem{"RenewalNotFinished", err.Error()})
	}
	after := a.report(account, problems)
	if after == 0 && waiting {
		after = releasedLook
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// problem is why a service account does not have all Secrets that it should.
type problem struct{ reason, message string }

func (a *accounts) report(account *metav1.PartialObjectMetadata, problems []problem) time.Duration {
	key := client.ObjectKeyFromObject(account)
	if len(problems) == 0 {
		a.failures.forget(key)
		return 0
	}
	a.warn(account, problems...)
	return a.failures.failed(key, account.ResourceVersion, a.clock.Now(), 0, a.random)
}

// patience is how many times in a row the agent lacks the right to the Secrets of a namespace before it writes an Event: the
// binder takes a moment to grant it, and the agent is notified then.
const patience = 4

// unserved handles an account in a namespace whose Secrets the agent may not read.
func (a *accounts) unserved(account *metav1.PartialObjectMetadata) time.Duration {
	wait := a.failures.failed(client.ObjectKeyFromObject(account), account.ResourceVersion, a.clock.Now(), 0, a.random)
	if a.failures.get(client.ObjectKeyFromObject(account)).failures >= patience {
		a.warn(account, problem{"NamespaceNotBound", fmt.Sprintf("the agent may not read Secrets of the namespace %s: there must be a RoleBinding %s in it, "+
			"which credence-server binder creates; an admin of the cluster can see whether that runs", account.Namespace, rights.AgentSecrets)})
	}
	return wait
}

// warn writes an Event for each problem, unless an account's last ones were the same a short while ago.
func (a *accounts) warn(account *metav1.PartialObjectMetadata, problems ...problem) {
	var all []string
	for _, p := range problems {
		all = append(all, p.reason+": "+p.message)
	}
	f := failure{message: strings.Join(all, "\n")}
	now, reported := a.clock.Now(), false
	a.failures.change(client.ObjectKeyFromObject(account), func(e *entry) {
		if reported = e.reported == f && now.Sub(e.reportedAt) < again; !reported {
			e.reported, e.reportedAt = f, now
		}
	})
	if reported {
		return
	}
	for _, p := range problems {
		a.events.workload.Event(reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, p.reason, p.message)
	}
}

// renewAll carries out the annotation of an account that requests new tokens in all its Secrets, and then removes it.
func (a *accounts) renewAll(ctx context.Context, account *metav1.PartialObjectMetadata, kept map[string]*corev1.Secret, wanted []string) error {
	key := client.ObjectKeyFromObject(account)
	if account.Annotations[v1alpha1.AnnotationOperation] != v1alpha1.OperationRenewToken {
		a.renewals.end(key)
		return nil
	}
	var secrets []types.NamespacedName
	for _, name := range wanted {
		secrets = append(secrets, types.NamespacedName{Namespace: account.Namespace, Name: tokensecret.NameFor(account.Name, name)})
	}
	a.renewals.keep(key, secrets)
	open, complete := a.renewals.state(key)
	if !open {
		if missing := missingOf(wanted, kept); missing != "" {
			return fmt.Errorf("a new token is requested, but there is no Secret yet for %s", missing)
		}
		a.renewals.begin(key, secrets)
		for _, secret := range secrets {
			a.queue(secret, 0)
		}
		_, complete = a.renewals.state(key)
	}
	if !complete {
		return nil // the requestor queues it then
	}
	out := account.DeepCopy()
	delete(out.Annotations, v1alpha1.AnnotationOperation)
	if err := a.client.Patch(ctx, out, client.MergeFromWithOptions(account, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("remove the annotation %s: %w", v1alpha1.AnnotationOperation, err)
	}
	a.renewals.end(key)
	return nil
}

func missingOf(wanted []string, kept map[string]*corev1.Secret) string {
	var missing []string
	for _, name := range wanted {
		if kept[name] == nil {
			missing = append(missing, name)
		}
	}
	return strings.Join(missing, ", ")
}
