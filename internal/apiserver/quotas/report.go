package quotas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/registry/quota"
)

// counted are the entries of all ledgers, by the uid of the Quota and the project.
type counted map[types.UID]map[string]map[string]entry

func (c counted) add(of *Ledger, entries map[string]entry) {
	if c[of.Quota] == nil {
		c[of.Quota] = map[string]map[string]entry{}
	}
	c[of.Quota][of.Project] = entries
}

// report writes into each Quota what its ledgers have, where that differs from what it has. So a Quota is written once in a sweep at most.
func (k *Keeper) report(ctx context.Context, ledgers counted) error {
	list, err := k.quotas.List(request.WithNamespace(ctx, ""), &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list Quotas: %w", err)
	}
	var errs []error
	for i := range list.(*v1alpha1.QuotaList).Items {
		of := &list.(*v1alpha1.QuotaList).Items[i]
		projects, err := k.projects(of, ledgers[of.UID])
		if err != nil {
			return err
		}
		status := statusOf(of, projects, metav1.NewTime(k.clock.Now()))
		if equality.Semantic.DeepEqual(of.Status, quota.Renewed(of.Status, status)) {
			continue
		}
		if err := k.quotas.Report(ctx, of, status); err != nil {
			errs = append(errs, fmt.Errorf("report what Quota %s/%s has counted: %w", of.Namespace, of.Name, err))
		}
	}
	return errors.Join(errs...)
}

// projects are the entries of a Quota, by project. Objects that were seen count where there is no ledger yet: nothing was reserved there.
func (k *Keeper) projects(of *v1alpha1.Quota, ledgers map[string]map[string]entry) (map[string]map[string]entry, error) {
	seen, err := k.seen(&Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}})
	if err != nil {
		return nil, err
	}
	projects := map[string]map[string]entry{}
	for key, each := range seen {
		project := ledgerOf(of, namespaceOf(key)).Project
		if projects[project] == nil {
			projects[project] = map[string]entry{}
		}
		projects[project][key] = each
	}
	maps.Copy(projects, ledgers)
	return projects, nil
}

// statusOf is what a Quota reports.
func statusOf(of *v1alpha1.Quota, projects map[string]map[string]entry, now metav1.Time) v1alpha1.QuotaStatus {
	status := v1alpha1.QuotaStatus{ObservedGeneration: of.Generation}
	for _, entries := range projects {
		status.Objects += int32(len(entries))
	}
	var unknown, over []string
	for _, name := range slices.Sorted(maps.Keys(of.Spec.Metrics)) {
		limit := of.Spec.Metrics[name]
		var most, mostReserved resource.Quantity
		unknowns := 0
		for _, entries := range projects {
			used, reserved, missing := amountOf(entries, name)
			unknowns += missing
			if used.Cmp(most) > 0 {
				most = used
			}
			if reserved.Cmp(mostReserved) > 0 {
				mostReserved = reserved
			}
		}
		most.Format, mostReserved.Format = limit.Format, limit.Format
		switch {
		case unknowns > 0:
			unknown = append(unknown, fmt.Sprintf("%s of %d", name, unknowns))
			continue
		case most.Cmp(limit) > 0:
			over = append(over, fmt.Sprintf("%s: %s of %s", name, most.String(), limit.String()))
		}
		put(&status.Used, name, most)
		if mostReserved.Sign() > 0 {
			put(&status.Reserved, name, mostReserved)
		}
	}
	condition := func(kind string, holds bool, reason, message string) {
		state := metav1.ConditionFalse
		if holds {
			state = metav1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: state, Reason: reason, Message: message, ObservedGeneration: of.Generation, LastTransitionTime: now})
	}
	if len(unknown) > 0 {
		condition(v1alpha1.ConditionReady, false, "UsageUnknown", "how much the objects use is not known, so none can use more: "+strings.Join(unknown, ", ")+" objects")
	} else {
		condition(v1alpha1.ConditionReady, true, "Counted", "all objects are counted")
	}
	if len(over) > 0 {
		condition(v1alpha1.ConditionExceeded, true, "MoreThanLimit", "the objects use more than is allowed, so none can use more: "+strings.Join(over, ", "))
	} else {
		condition(v1alpha1.ConditionExceeded, false, "WithinLimits", "the objects use no more than is allowed")
	}
	return status
}

// amountOf adds up what stored objects use of something, and what was reserved beyond that, and counts the objects of which that is not known.
func amountOf(entries map[string]entry, name string) (used, reserved resource.Quantity, unknown int) {
	for _, each := range entries {
		charge, known := each.charge(name)
		if !known {
			unknown++
			continue
		}
		amount := each.Amounts[name]
		used.Add(amount)
		charge.Sub(amount)
		reserved.Add(charge)
	}
	return used, reserved, unknown
}

func put(amounts *contextkind.Amounts, name string, amount resource.Quantity) {
	if *amounts == nil {
		*amounts = contextkind.Amounts{}
	}
	(*amounts)[name] = amount
}
