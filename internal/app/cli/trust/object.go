package trust

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/trust"
)

// object is KIND/NAMESPACE/NAME, or KIND/NAME of an object without a namespace.
type object struct{ kind, namespace, name string }

func parseObject(text string) (object, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return object{}, fmt.Errorf("--context-object %q is not an object: give KIND/NAMESPACE/NAME, or KIND/NAME of an object without a namespace", text)
	}
	o := object{kind: parts[0], name: parts[len(parts)-1]}
	if len(parts) == 3 {
		o.namespace = parts[1]
	}
	for _, name := range parts[1:] {
		if err := cluster.CheckName(name); err != nil {
			return object{}, fmt.Errorf("--context-object %q: %w", text, err)
		}
	}
	return o, nil
}

// find looks up the claim of the object, which its ContextKind has, and the object's uid.
func (o object) find(cmd *cobra.Command, api *cluster.API) (trust.ContextObject, error) {
	request := connection.Request{Program: cmd.Root().DisplayName()}
	var known []string
	carriers := map[string][]string{} // of claims of other kinds: the objects whose tokens have them, too
	var kinds []*identityv1alpha1.ContextKind
	err := cluster.Each(cmd.Context(), api, cluster.Listing{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: "contextkinds"}, func(kind *identityv1alpha1.ContextKind) {
		known = append(known, kind.Name)
		for _, related := range kind.Spec.Related {
			carriers[related.Claim] = append(carriers[related.Claim], kind.Name)
		}
		if slices.ContainsFunc([]string{kind.Name, kind.Spec.Object.Resource, kind.Spec.Object.Kind}, func(word string) bool { return strings.EqualFold(word, o.kind) }) {
			kinds = append(kinds, kind)
		}
	})
	if err != nil {
		return trust.ContextObject{}, request.ObjectFailure("list the ContextKinds, which name the claims of objects", err)
	}
	slices.Sort(known)
	if len(kinds) != 1 {
		return trust.ContextObject{}, command.Usage(cmd, fmt.Sprintf("%q of --context-object is the kind of %d ContextKinds, and must be that of one: %s", o.kind, len(kinds), strings.Join(known, ", ")))
	}
	spec := kinds[0].Spec
	if spec.Claim == trust.ClusterClaim {
		return trust.ContextObject{}, command.Usage(cmd, fmt.Sprintf("the claim %s is in all tokens that a cluster has, not only in those on behalf of a %s: name the cluster with --cluster", spec.Claim, spec.Object.Kind))
	}
	if others := carriers[spec.Claim]; len(others) > 0 {
		return trust.ContextObject{}, command.Usage(cmd, fmt.Sprintf("the claim %s is in tokens on behalf of %s, too: give each %s an identity of its own", spec.Claim, strings.Join(others, ", "), spec.Object.Kind))
	}
	kind := cluster.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: spec.Object.Group, Version: spec.Object.Version, Kind: spec.Object.Kind},
		Resource:         spec.Object.Resource, Namespaced: spec.Object.Scope != identityv1alpha1.ScopeCluster,
	}
	if kind.Namespaced != (o.namespace != "") {
		return trust.ContextObject{}, command.Usage(cmd, fmt.Sprintf("--context-object of %s is KIND/NAMESPACE/NAME where the kind has namespaces, else KIND/NAME: it has namespaces: %t", kind.Title(), kind.Namespaced))
	}
	request.Namespace = o.namespace
	title := strings.TrimPrefix(o.namespace+"/"+o.name, "/")
	var stored metav1.PartialObjectMetadata
	if err := api.Get(cmd.Context(), &stored, kind.Place(o.namespace, o.name)); err != nil {
		return trust.ContextObject{}, request.ObjectFailure(fmt.Sprintf("read %s %s", kind.Title(), title), err)
	}
	return trust.ContextObject{Claim: spec.Claim, UID: string(stored.UID), Title: kind.Kind + " " + title}, nil
}
