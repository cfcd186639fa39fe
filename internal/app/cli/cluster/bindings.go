package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	api "github.com/credence-id/credence/internal/cluster"
)

// bound are the RoleBindings of all namespaces that have an account of a cluster as a subject.
type bound struct {
	member
	bindings []*rbacv1.RoleBinding
	note     string // what was left out; empty if nothing was
}

func (m member) bound(ctx context.Context, from *api.API) (*bound, error) {
	found := &bound{member: m}
	err := api.Each(ctx, from, api.Listing{API: rbacAPI, Resource: "rolebindings"}, func(b *rbacv1.RoleBinding) {
		if slices.ContainsFunc(b.Subjects, m.is) {
			found.bindings = append(found.bindings, b)
		}
	})
	if apierrors.IsForbidden(err) {
		found.note, err = "you may not list the RoleBindings of all namespaces: those of namespaces that WorkloadCluster "+m.name+" does not list were not looked for", nil
	}
	return found, err
}

// is reports whether a subject is an account of the cluster.
func (m member) is(s rbacv1.Subject) bool {
	return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == v1alpha1.WorkloadClusters && (s.Name == m.agent() || s.Name == m.webhook())
}

// made reports whether joining made a RoleBinding.
func (m member) made(b *rbacv1.RoleBinding) bool {
	return b.Name == bindingName(m.agent()) || b.Name == bindingName(m.webhook())
}

// surplus are the RoleBindings that joining made, in namespaces that the cluster has no more.
func (b *bound) surplus() []objects.Object {
	return b.without(b.made)
}

// only are the RoleBindings that give rights to the cluster alone, beside those that joining makes.
func (b *bound) only() []objects.Object {
	return b.without(func(found *rbacv1.RoleBinding) bool { return b.made(found) || !b.mixed(found) })
}

func (b *bound) without(wanted func(*rbacv1.RoleBinding) bool) (chosen []objects.Object) {
	own := b.objects()
	for _, found := range b.bindings {
		o := objects.Binding(found)
		if wanted(found) && !slices.ContainsFunc(own, func(each objects.Object) bool { return each.At == o.At }) {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

// mixed reports whether a RoleBinding has other subjects, too.
func (m member) mixed(b *rbacv1.RoleBinding) bool {
	return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return !m.is(s) })
}

// readable are the namespaces whose identities the agent may read by a RoleBinding.
func (b *bound) readable() (namespaces []string) {
	for _, found := range b.bindings {
		if found.RoleRef.Kind == "ClusterRole" && found.RoleRef.Name == readIdentities && slices.ContainsFunc(found.Subjects, func(s rbacv1.Subject) bool { return b.is(s) && s.Name == b.agent() }) {
			namespaces = append(namespaces, found.Namespace)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(namespaces)))
}

// notes are what was not looked for, and what joining can't give: objects on the cluster may use identities of any namespace. The RoleBinding for
// that has another name than those that joining makes, which are deleted where the cluster does not list the namespace.
func (b *bound) notes() []string {
	notes := []string{}
	there := "no other namespace has it yet"
	if namespaces := slices.DeleteFunc(b.readable(), func(namespace string) bool { return slices.Contains(b.namespaces, namespace) }); len(namespaces) > 0 {
		there = "that have it: " + strings.Join(namespaces, ", ")
	}
	if b.note != "" {
		notes, there = append(notes, b.note), "which have it is not known"
	}
	if b.fromContexts {
		notes = append(notes, fmt.Sprintf(`the agent may read identities of listed namespaces only. In each other one with identities that objects on the cluster use, a cluster admin gives it this (%s):
  kubectl create rolebinding credence:contexts:%s -n NAMESPACE --clusterrole=%s --serviceaccount=%s:%s`, there, b.agent(), readIdentities, v1alpha1.WorkloadClusters, b.agent()))
	}
	return notes
}

func printNotes(w io.Writer, notes ...string) {
	for _, note := range notes {
		fmt.Fprintln(w, "note: "+note)
	}
}

// remove deletes objects, in order, and prints what it has deleted. Those that are gone are passed over.
func remove(ctx context.Context, from *api.API, out io.Writer, program string, all []objects.Object) (deleted int, err error) {
	for _, o := range all {
		switch err := from.Delete(ctx, o.At); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return deleted, connection.Request{Namespace: o.At.Namespace, Program: program}.ObjectFailure(fmt.Sprintf("delete %s %s", o.Kind, o.At.Name), err)
		}
		deleted++
		fmt.Fprintln(out, deletion(o))
	}
	return deleted, nil
}

// deletion names the namespace of what is not in that of all clusters.
func deletion(o objects.Object) string {
	text := fmt.Sprintf("%s/%s deleted", o.Kind, o.At.Name)
	if o.At.Namespace != "" && o.At.Namespace != v1alpha1.WorkloadClusters {
		text += " from namespace " + o.At.Namespace
	}
	return text
}
