package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// accounts keeps one Secret for each identity that a service account gives its pods, and none besides.
type accounts struct {
	client     client.Client
	live       client.Reader
	identities Identities
	reviews    Reviews
	clock      clock.PassiveClock
	random     func() float64
	events     Events
	asks       *asks
	// queue makes the requestor look at a Secret.
	queue    func(types.NamespacedName, time.Duration)
	failures *ledger
	log      *slog.Logger
}

// Reconcile looks at one service account. It never returns an error of somebody else's making: waits are its own.
func (a *accounts) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	account := newAccount()
	if err := a.client.Get(ctx, request.NamespacedName, account); err != nil {
		if client.IgnoreNotFound(err) == nil {
			a.failures.forget(request.NamespacedName)
			a.asks.end(request.NamespacedName)
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
			a.warn(account, "InvalidAnnotation", fmt.Sprintf("annotation %s %v", v1alpha1.AnnotationAccountIdentities, err))
			return reconcile.Result{}, nil // what is there stays: this is no wish to lose it
		}
	}
	problems := a.create(ctx, account, wanted, kept)
	problems = append(problems, a.remove(ctx, account, wanted, kept)...)
	if err := a.asked(ctx, account, kept, wanted); err != nil {
		problems = append(problems, problem{"RenewalNotFinished", err.Error()})
	}
	return reconcile.Result{RequeueAfter: a.report(account, problems)}, nil
}

// problem is why a service account does not have all Secrets that it should.
type problem struct{ reason, message string }

func (a *accounts) report(account *metav1.PartialObjectMetadata, problems []problem) time.Duration {
	key := client.ObjectKeyFromObject(account)
	if len(problems) == 0 {
		a.failures.forget(key)
		return 0
	}
	for _, p := range problems {
		a.warn(account, p.reason, p.message)
	}
	return a.failures.failed(key, account.ResourceVersion, a.clock.Now(), a.random)
}

// warn writes an Event, unless the account's last one was the same a short while ago.
func (a *accounts) warn(account *metav1.PartialObjectMetadata, reason, message string) {
	now, told := a.clock.Now(), false
	a.failures.change(client.ObjectKeyFromObject(account), func(e *entry) {
		f := failure{reason: reason, message: message}
		if told = e.told == f && now.Sub(e.toldAt) < again; !told {
			e.told, e.toldAt = f, now
		}
	})
	if told {
		return
	}
	a.events.workload.Event(reference("v1", "ServiceAccount", account.Namespace, account.Name, string(account.UID)), corev1.EventTypeWarning, reason, message)
}

// secrets returns the Secrets that the agent keeps for an account, by the name of their identity.
func (a *accounts) secrets(ctx context.Context, account *metav1.PartialObjectMetadata) (map[string]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := a.client.List(ctx, &list, client.InNamespace(account.Namespace), client.MatchingFields{accountIndex: account.Name}); err != nil {
		return nil, err
	}
	kept := map[string]*corev1.Secret{}
	for i := range list.Items {
		secret := &list.Items[i]
		_, uid, _ := accountOf(secret)
		name := secret.Annotations[v1alpha1.AnnotationName]
		if uid == account.UID && secret.DeletionTimestamp == nil && secret.Name == tokensecret.NameFor(account.Name, name) {
			kept[name] = secret
		}
	}
	return kept, nil
}

// create makes the Secrets that are missing.
func (a *accounts) create(ctx context.Context, account *metav1.PartialObjectMetadata, wanted []string, kept map[string]*corev1.Secret) []problem {
	var problems []problem
	for _, name := range wanted {
		if kept[name] != nil {
			continue
		}
		if p := a.createOne(ctx, account, types.NamespacedName{Namespace: account.Namespace, Name: name}); p != nil {
			problems = append(problems, *p)
		}
	}
	return problems
}

func (a *accounts) createOne(ctx context.Context, account *metav1.PartialObjectMetadata, identity types.NamespacedName) *problem {
	wi, err := a.identities.Get(ctx, identity.Namespace, identity.Name)
	switch {
	case err != nil && cause(err) == IdentityMissing:
		return &problem{"IdentityMissing", fmt.Sprintf("WorkloadIdentity %s does not exist: create it, or correct the annotation %s", identity, v1alpha1.AnnotationAccountIdentities)}
	case err != nil && cause(err) == AgentForbidden:
		return &problem{"IdentityUnreadable", (*requestor)(nil).forbidden(identity, err)}
	case err != nil:
		return &problem{"IdentityUnreadable", fmt.Sprintf("WorkloadIdentity %s can't be read: %v", identity, err)}
	}
	allowed, err := a.reviews.MayUse(ctx, client.ObjectKeyFromObject(account), account.UID, identity)
	if err != nil {
		return &problem{"ReviewFailed", err.Error()}
	}
	if !allowed {
		return &problem{"UseDenied", mayNotUse(client.ObjectKeyFromObject(account), identity)}
	}
	secret := newSecret(account, wi)
	if err := a.client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return a.taken(ctx, account, secret)
	} else if err != nil {
		return &problem{"SecretNotCreated", fmt.Sprintf("create Secret %s: %v", secret.Name, err)}
	}
	a.log.InfoContext(ctx, "Secret created", "secret", secret.Namespace+"/"+secret.Name, "serviceAccount", account.Name, "identity", identity.Name)
	return nil
}

// taken says whose a Secret is that has the name of one that is needed; nil if the cache was only behind.
func (a *accounts) taken(ctx context.Context, account *metav1.PartialObjectMetadata, secret *corev1.Secret) *problem {
	var found corev1.Secret
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(secret), &found); err != nil {
		return &problem{"SecretNotCreated", fmt.Sprintf("read Secret %s: %v", secret.Name, err)}
	}
	if _, uid, owned := accountOf(&found); owned && uid == account.UID && tokensecret.Labelled(&found) {
		return nil
	}
	return &problem{"SecretNotOwned", fmt.Sprintf("the Secret %s is needed for tokens of WorkloadIdentity %s, but is somebody else's, and is left alone: remove or rename it",
		secret.Name, secret.Annotations[v1alpha1.AnnotationName])}
}

func newSecret(account *metav1.PartialObjectMetadata, wi *v1alpha1.WorkloadIdentity) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace,
			Name:      tokensecret.NameFor(account.Name, wi.Name),
			Labels: map[string]string{
				v1alpha1.LabelPurpose:  v1alpha1.PurposeTokenRequestor,
				v1alpha1.LabelProvider: wi.Spec.TargetSystem.Type,
			},
			Annotations: map[string]string{
				v1alpha1.AnnotationName:      wi.Name,
				v1alpha1.AnnotationNamespace: wi.Namespace,
				v1alpha1.AnnotationContextObject: tokensecret.FormatContext(v1alpha1.ContextObject{
					APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace, UID: account.UID,
				}),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// remove deletes the Secrets of identities that the account does not name any more.
func (a *accounts) remove(ctx context.Context, account *metav1.PartialObjectMetadata, wanted []string, kept map[string]*corev1.Secret) []problem {
	var problems []problem
	for name, secret := range kept {
		if slices.Contains(wanted, name) {
			continue
		}
		err := a.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			problems = append(problems, problem{"SecretNotDeleted", fmt.Sprintf("delete Secret %s, which is not needed any more: %v", secret.Name, err)})
			continue
		}
		a.log.InfoContext(ctx, "Secret deleted: the service account does not name its identity any more", "secret", secret.Namespace+"/"+secret.Name, "serviceAccount", account.Name)
	}
	return problems
}

// asked carries out what the annotation of an account asks for: new tokens in all its Secrets; then it is removed.
func (a *accounts) asked(ctx context.Context, account *metav1.PartialObjectMetadata, kept map[string]*corev1.Secret, wanted []string) error {
	key := client.ObjectKeyFromObject(account)
	if account.Annotations[v1alpha1.AnnotationOperation] != v1alpha1.OperationRenewToken {
		a.asks.end(key)
		return nil
	}
	var secrets []types.NamespacedName
	for _, name := range wanted {
		secrets = append(secrets, types.NamespacedName{Namespace: account.Namespace, Name: tokensecret.NameFor(account.Name, name)})
	}
	a.asks.keep(key, secrets)
	open, complete := a.asks.state(key)
	if !open {
		if missing := missingOf(wanted, kept); missing != "" {
			return fmt.Errorf("a new token is asked for, but there is no Secret yet for %s", missing)
		}
		a.asks.begin(key, secrets)
		for _, secret := range secrets {
			a.queue(secret, 0)
		}
		_, complete = a.asks.state(key)
	}
	if !complete {
		return nil // the requestor says when
	}
	out := account.DeepCopy()
	delete(out.Annotations, v1alpha1.AnnotationOperation)
	if err := a.client.Patch(ctx, out, client.MergeFromWithOptions(account, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("remove the annotation %s: %w", v1alpha1.AnnotationOperation, err)
	}
	a.asks.end(key)
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
