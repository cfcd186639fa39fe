package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/version"
	"github.com/credence-id/credence/internal/wording"
)

// Manifest is a file of what this version installs, such as base/50-agent.yaml.
type Manifest struct {
	Name    string
	Objects []*unstructured.Unstructured
}

// parts are the parts of an installation that can be installed alone, by the first digit of the files that belong to them. A part is installed
// if one of these files is; of a file that is missing whole nothing else is known.
var parts = map[byte]string{'2': "identities", '3': "identities", '4': "identities", '5': "workloads", '7': "workloads", '6': "gMSA"}

// optional are the numbers of files that an installation may lack: they belong to several parts, or may be replaced.
var optional = []string{"20-roles-for-people.yaml", "51-webhook.yaml", "54-quotas.yaml", "57-identities-of-this-cluster.yaml", "61-gmsa-webhooks.yaml"}

// partOf returns the part that a file belongs to alone; empty for those of several, and for options.
func partOf(file string) string {
	if path.Dir(file) != "base" || slices.Contains(optional, path.Base(file)) {
		return ""
	}
	return parts[path.Base(file)[0]]
}

// resources are those whose objects are compared, by kind.
var resources = map[string]string{
	"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles", "RoleBinding": "rolebindings",
	"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	"MutatingAdmissionPolicy": "mutatingadmissionpolicies", "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
	"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}

// installed has the fields of an object that are compared.
type installed struct {
	Metadata metav1.ObjectMeta   `json:"metadata"`
	Rules    []rbacv1.PolicyRule `json:"rules"`
	// AggregationRule is there where the cluster writes the rules.
	AggregationRule map[string]any   `json:"aggregationRule"`
	RoleRef         rbacv1.RoleRef   `json:"roleRef"`
	Subjects        []rbacv1.Subject `json:"subjects"`
	Spec            map[string]any   `json:"spec"`
	Webhooks        []map[string]any `json:"webhooks"`
}

// checkInstallation compares roles, bindings, policies and webhooks of a cluster with those that this version installs. Added subjects are the
// cluster's own; rights that were added may be meant; fields that were added to a policy or webhook may be what loosens it.
func (d *Examination) checkInstallation(ctx context.Context, found *Diagnosis, check string, from *cluster.API) {
	have, err := readInstalled(ctx, from, d.Manifests)
	if skipped(found, check, "list roles, their bindings, admission policies and webhook configurations", err) {
		return
	}
	if err != nil {
		found.add(check, Fail, "", "%v", err)
		return
	}
	whole := map[string]bool{} // parts that are installed
	for _, m := range d.Manifests {
		if part := partOf(m.Name); part != "" && slices.ContainsFunc(m.Objects, func(o *unstructured.Unstructured) bool { return have[nameOf(o)] != nil }) {
			whole[part] = true
		}
	}
	compared, faulty := 0, 0
	for _, m := range d.Manifests {
		var faults, added []string
		there := 0
		for _, want := range m.Objects {
			if resources[want.GetKind()] == "" {
				continue
			}
			o := have[nameOf(want)]
			if o == nil {
				faults = append(faults, nameOf(want)+" is missing")
				continue
			}
			there++
			lacks, more, err := differences(want, o)
			if err != nil {
				found.add(check, Fail, "", "read %s of %s: %v", nameOf(want), m.Name, err)
			}
			faults, added = append(faults, lacks...), append(added, more...)
		}
		if there == 0 && !whole[partOf(m.Name)] {
			continue // of a part that is not installed
		}
		compared += there
		if len(faults) > 0 {
			faulty++
			found.add(check, Fail, mend(m.Name, have), "%s (version %s): %s", m.Name, version.Read().Version, strings.Join(faults, "; "))
		}
		if len(added) > 0 {
			faulty++
			found.add(check, Warn, "unless that is meant, "+mend(m.Name, have), "%s (version %s): rights were added: %s", m.Name, version.Read().Version, strings.Join(added, "; "))
		}
	}
	switch {
	case faulty > 0:
	case compared == 0:
		found.skip(check, "none of the roles and policies that Credence installs is in the cluster")
	default:
		found.pass(check, "%s as this version installs them, apart from subjects that were added, which are not looked at", wording.Plural(compared, "role, binding, policy or webhook configuration is", "roles, bindings, policies and webhook configurations are"))
	}
}

// mend is how a file of manifests is installed.
func mend(file string, have map[string]*installed) string {
	const release, namespace = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
	for _, o := range have {
		if name := o.Metadata.Annotations[release]; name != "" {
			return fmt.Sprintf("a cluster admin upgrades to the chart of this version (docs/howto/upgrade.md): helm upgrade %s CHART -n %s --reset-then-reuse-values", name, o.Metadata.Annotations[namespace])
		}
	}
	return "a cluster admin runs, in a checkout of this version: kubectl apply --server-side --force-conflicts -f deploy/" + file + " (on a plane: credence down, then credence up)"
}

// nameOf names an object with its kind.
func nameOf(o *unstructured.Unstructured) string {
	return fullName(o.GetKind(), o.GetNamespace(), o.GetName())
}

func fullName(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// readInstalled reads those of the manifests' objects that a cluster has, by their names.
func readInstalled(ctx context.Context, from *cluster.API, manifests []Manifest) (map[string]*installed, error) {
	wanted, kinds := map[string]bool{}, map[cluster.Listing]string{}
	for _, m := range manifests {
		for _, o := range m.Objects {
			if resource := resources[o.GetKind()]; resource != "" {
				wanted[nameOf(o)] = true
				kinds[cluster.Listing{API: "/apis/" + o.GetAPIVersion(), Namespace: o.GetNamespace(), Resource: resource}] = o.GetKind()
			}
		}
	}
	have := map[string]*installed{}
	for listing, kind := range kinds {
		err := cluster.Each(ctx, from, listing, func(o *installed) {
			if name := fullName(kind, listing.Namespace, o.Metadata.Name); wanted[name] {
				have[name] = o
			}
		})
		if err != nil && !apierrors.IsNotFound(err) { // a kind that the cluster does not serve
			return nil, fmt.Errorf("list %s: %w", listing.Resource, err)
		}
	}
	return have, nil
}

// differences returns what an object lacks of a manifest, and the rights that it has beyond it.
func differences(manifest *unstructured.Unstructured, have *installed) (faults, added []string, err error) {
	text, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil, nil, err
	}
	var want installed
	if err := json.Unmarshal(text, &want); err != nil {
		return nil, nil, err
	}
	name := nameOf(manifest)
	if want.AggregationRule == nil {
		for _, right := range missingRights(have.Rules, want.Rules) {
			added = append(added, name+" has "+right)
		}
	}
	for _, right := range missingRights(want.Rules, have.Rules) {
		faults = append(faults, name+" lacks "+right)
	}
	if have.RoleRef != want.RoleRef {
		faults = append(faults, fmt.Sprintf("%s binds %s %s in place of %s %s", name, have.RoleRef.Kind, have.RoleRef.Name, want.RoleRef.Kind, want.RoleRef.Name))
	}
	for _, subject := range want.Subjects {
		same := func(s rbacv1.Subject) bool { // the API server fills in the group
			return s.Kind == subject.Kind && s.Namespace == subject.Namespace && s.Name == subject.Name
		}
		if !slices.ContainsFunc(have.Subjects, same) {
			faults = append(faults, name+" lacks "+fullName(subject.Kind, subject.Namespace, subject.Name))
		}
	}
	for _, webhook := range want.Webhooks {
		at := slices.IndexFunc(have.Webhooks, func(w map[string]any) bool { return w["name"] == webhook["name"] })
		if at < 0 {
			faults = append(faults, fmt.Sprintf("%s lacks webhook %s", name, webhook["name"]))
			continue
		}
		faults = append(faults, unequal(fmt.Sprintf("webhook %s of %s", webhook["name"], name), have.Webhooks[at], webhook, "clientConfig", "failurePolicy")...)
	}
	if len(want.Spec) > 0 {
		faults = append(faults, unequal(name, have.Spec, want.Spec, "", "validationActions")...)
	}
	return faults, added, nil
}

// unequal words how a policy or webhook differs from that of a manifest, apart from a setting, and from one of those of gMSA
// (--gmsa-enforcement).
func unequal(name string, have, want map[string]any, setting, ofGMSA string) []string {
	have, want = maps.Clone(have), maps.Clone(want)
	for _, guard := range []map[string]any{have, want} {
		delete(guard, setting)
		if strings.Contains(name, "credence-gmsa") {
			delete(guard, ofGMSA)
		}
	}
	if !holds(have, want) {
		return []string{name + " is not that of this version"}
	}
	if added := additions(have, want, ""); len(added) > 0 {
		return []string{fmt.Sprintf("%s has %s, which the manifest of this version does not have: a cluster admin removes it with kubectl edit", name, strings.Join(added, ", "))}
	}
	return nil
}

// defaults are what the API server fills into policies and webhooks, apart from empty values.
var defaults = map[string]any{"failurePolicy": "Fail", "matchPolicy": "Equivalent", "reinvocationPolicy": "Never", "scope": "*", "timeoutSeconds": 10.0}

// additions returns the fields of a value that neither the manifest has nor the API server has filled in.
func additions(have, want any, path string) []string {
	var added []string
	switch have := have.(type) {
	case map[string]any:
		want, _ := want.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(have)) {
			if _, written := want[key]; written || have[key] != nil && have[key] != defaults[key] {
				added = append(added, additions(have[key], want[key], path+"."+key)...)
			}
		}
	case []any:
		want, _ := want.([]any)
		if len(want) != len(have) {
			return []string{strings.TrimPrefix(path, ".")}
		}
		for i := range have {
			added = append(added, additions(have[i], want[i], path)...)
		}
	default:
		if want == nil {
			return []string{strings.TrimPrefix(path, ".")}
		}
	}
	return added
}

// missingRights lists the rights that rules lack, by resource.
func missingRights(want, have []rbacv1.PolicyRule) []string {
	verbs := map[string][]string{}
	for _, rule := range want {
		for _, url := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				if !slices.ContainsFunc(have, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.NonResourceURLs, url) && (slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, "*"))
				}) {
					verbs[url] = append(verbs[url], verb)
				}
			}
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					what := strings.TrimSuffix(resource+"."+group, ".")
					if name != "" {
						what += " " + name
					}
					plain, sub, _ := strings.Cut(resource, "/")
					for _, verb := range rule.Verbs {
						if request := (access.Request{Verb: verb, Group: group, Resource: plain, Subresource: sub, Name: name}); !request.AllowedBy(have) {
							verbs[what] = append(verbs[what], verb)
						}
					}
				}
			}
		}
	}
	var missing []string
	for _, what := range slices.Sorted(maps.Keys(verbs)) {
		missing = append(missing, strings.Join(verbs[what], ", ")+" on "+what)
	}
	return missing
}

// holds reports whether a value that the API server has completed is still the one that was written.
func holds(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, _ := have.(map[string]any)
		for key, value := range want {
			if !holds(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, _ := have.([]any)
		return slices.EqualFunc(have, want, holds)
	}
	return reflect.DeepEqual(have, want)
}
