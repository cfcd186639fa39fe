package quotas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

// errRefused ends an update of a ledger without a write.
var errRefused = errors.New("the write is refused")

// Write is a write of a context object.
type Write struct {
	// Request is the uid of the admission request.
	Request  types.UID
	Resource schema.GroupResource
	// Object is the object as it would be stored, and Old as it is stored; nil for a new one.
	Object, Old *unstructured.Unstructured
	// DryRun reserves nothing.
	DryRun bool
}

// write is one for which may be reserved.
type write struct {
	Write
	namespace, key string
	reservation    reservation
}

// state is what an object counts for.
type state struct {
	listed  map[types.NamespacedName]types.NamespacedName // Quotas, each with a binding that lists it
	missing []types.NamespacedName                        // bindings that do not exist
	amounts contextkind.Amounts
	end     time.Time
	// why one of them is not known
	bindingsFault, amountsFault, endFault error
}

// Admit returns why a write is refused, or an empty text: then what it needs is reserved. Its errors are API errors; a write about which
// nothing is known must not be made.
func (k *Keeper) Admit(ctx context.Context, w Write) (string, error) {
	kind, err := k.objects.KindFor(w.Resource)
	if err != nil || kind == nil {
		return "", err
	}
	if version := kind.Object.GroupVersion().String(); w.Object.GetAPIVersion() != version {
		return "", apierrors.NewBadRequest(fmt.Sprintf("a review of %s must have the object in %s, as its ContextKind has it, and not in %s", w.Resource, version, w.Object.GetAPIVersion()))
	}
	after, err := k.stateOf(ctx, kind, w.Object)
	if err != nil {
		return "", err
	}
	var before state
	if w.Old != nil {
		if before, err = k.stateOf(ctx, kind, w.Old); err != nil {
			return "", err
		}
	}
	leaving := w.Old != nil && w.Old.GetDeletionTimestamp() != nil // such an object is let go
	switch {
	case after.bindingsFault != nil && before.bindingsFault == nil:
		return fmt.Sprintf("which CredentialsBindings %s refers to is not known, and so which Quotas limit it: %v", w.title(), after.bindingsFault), nil
	case len(after.listed)+len(after.missing) == 0:
		return "", nil
	case after.amountsFault != nil && leaving && before.amountsFault != nil:
		return "", nil
	}
	if refusal := unlisted(after, before); refusal != "" && !leaving {
		return refusal, nil
	}
	if w.Old == nil {
		// A new object beside one of its name is not stored, so nothing is reserved for it.
		if there, err := k.objects.Read(ctx, kind, w.Object.GetNamespace(), w.Object.GetName()); err != nil {
			return "", err
		} else if there != nil && there.GetUID() != w.Object.GetUID() {
			return "", apierrors.NewAlreadyExists(w.Resource, w.Object.GetName())
		}
	}
	return k.admit(ctx, kind, w, after, before)
}

// unlisted returns why an object may not use more by a CredentialsBinding that does not exist: a user who can delete it could get around its Quotas.
func unlisted(after, before state) string {
	for _, name := range after.missing {
		if !slices.Contains(before.missing, name) || after.grows(before) {
			return fmt.Sprintf("CredentialsBinding %s, to which it refers, does not exist, so the Quotas that it lists are not known: a user who may create it makes it first", name)
		}
	}
	return ""
}

// title is the object for people.
func (w Write) title() string {
	return w.Object.GetKind() + " " + strings.TrimPrefix(w.Object.GetNamespace()+"/"+cmp.Or(w.Object.GetName(), w.Object.GetGenerateName()), "/")
}

// exceeds reports whether more of something is used than before.
func (s state) exceeds(before state, of string) bool {
	amount, was := s.amounts[of], before.amounts[of]
	return amount.Sign() > 0 && amount.Cmp(was) > 0
}

// grows reports whether more of anything is used than before, or that is not known.
func (s state) grows(before state) bool {
	return s.amountsFault != nil || slices.ContainsFunc(slices.Collect(maps.Keys(s.amounts)), func(of string) bool { return s.exceeds(before, of) })
}

func (k *Keeper) admit(ctx context.Context, kind *contextkind.Kind, w Write, after, before state) (string, error) {
	r := reservation{Request: w.Request, UID: w.Object.GetUID(), Amounts: after.amounts, Until: metav1.NewTime(k.clock.Now().Add(reserved))}
	if w.Old != nil {
		r.UID, r.Replaces = w.Old.GetUID(), w.Old.GetResourceVersion()
	}
	namespace := w.Object.GetNamespace()
	full := write{w, namespace, keyOf(w.Resource, namespace, w.Object.GetName()), r}
	var done []*v1alpha1.Quota
	for _, name := range sorted(after.listed) {
		limits, refusal, err := k.admitTo(ctx, kind, name, full, after, before)
		if err == nil && refusal == "" {
			if limits != nil && !w.DryRun {
				done = append(done, limits)
			}
			continue
		}
		for _, each := range done {
			k.release(ctx, each, full)
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Quota %s, which CredentialsBinding %s lists: %s", name, after.listed[name], refusal), nil
	}
	return "", nil
}

// admitTo returns why a Quota does not allow a write, and the Quota if something of it is reserved.
func (k *Keeper) admitTo(ctx context.Context, kind *contextkind.Kind, name types.NamespacedName, w write, after, before state) (*v1alpha1.Quota, string, error) {
	_, counted := before.listed[name]
	was := before
	if !counted {
		was = state{} // all of it is new to this Quota
	}
	growing := after.grows(was)
	if counted && !growing && after.end.Equal(before.end) && after.endFault == nil {
		return nil, "", nil
	}
	limits, err := k.quota(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if limits == nil {
		return nil, "it does not exist: a user who may create it makes it, or the object names another binding", nil
	}
	if after.amountsFault != nil {
		return nil, fmt.Sprintf("what %s uses is not known: %v", w.title(), after.amountsFault), nil
	}
	if refusal := k.lifetime(kind, limits, w, after, before, counted, growing); refusal != "" {
		return nil, refusal, nil
	}
	for _, of := range slices.Sorted(maps.Keys(limits.Spec.Metrics)) {
		if _, known := after.amounts[of]; !known {
			return nil, fmt.Sprintf("it limits %s, and spec.usage of ContextKind %s does not return how much of it an object uses", of, kind.Name()), nil
		}
	}
	if len(limits.Spec.Metrics) == 0 || !growing {
		return nil, "", nil
	}
	if w.namespace == "" && ledgerOf(limits, "-").Project != "" {
		return nil, "it limits projects, and the object is in no namespace", nil
	}
	refusal, err := k.reserve(ctx, limits, w, func(of string) bool { return after.exceeds(was, of) })
	return limits, refusal, err
}

// lifetime returns why a write would let an object live longer than a Quota allows.
func (k *Keeper) lifetime(kind *contextkind.Kind, limits *v1alpha1.Quota, w write, after, before state, counted, growing bool) string {
	if limits.Spec.ClusterLifetimeDays == nil {
		return ""
	}
	now, days := k.clock.Now(), *limits.Spec.ClusterLifetimeDays
	created := now
	if w.Old != nil {
		created = w.Old.GetCreationTimestamp().Time
	}
	last := created.Add(time.Duration(days) * 24 * time.Hour)
	until := last.UTC().Format(time.RFC3339)
	if kind.Expires() && (!counted || !after.end.Equal(before.end) || after.endFault != nil) {
		switch {
		case after.endFault != nil:
			return fmt.Sprintf("when %s ends is not known: %v; it may live %d days, until %s", w.title(), after.endFault, days, until)
		case after.end.IsZero():
			return fmt.Sprintf("the object must state when it ends: it may live %d days, until %s", days, until)
		case after.end.After(last):
			return fmt.Sprintf("the object would end at %s: it may live %d days, until %s", after.end.UTC().Format(time.RFC3339), days, until)
		}
	}
	if growing && now.After(last) {
		return fmt.Sprintf("the object was to live %d days, until %s: it cannot grow any more", days, until)
	}
	return ""
}

func (k *Keeper) stateOf(ctx context.Context, kind *contextkind.Kind, object *unstructured.Unstructured) (state, error) {
	var found state
	bindings, err := kind.Bindings(ctx, object.Object, object.GetNamespace())
	if err != nil {
		found.bindingsFault = err
		return found, nil
	}
	if found.listed, found.missing, err = k.listedBy(ctx, bindings); err != nil || len(found.listed)+len(found.missing) == 0 {
		return found, err
	}
	found.amounts, found.amountsFault = kind.Amounts(ctx, object.Object)
	if kind.Expires() {
		found.end, found.endFault = kind.End(ctx, object.Object)
	}
	return found, nil
}
