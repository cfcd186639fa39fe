package webhook

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/gmsa"
)

// revision decides about a ControllerRevision that a user writes by hand: StatefulSets and DaemonSets make pods of it, as of
// their template. It holds a patch. One that replaces the whole template is checked like a template; any other is
// merged into an unknown template, so its author must be allowed to use every account.
func (a *managedAccounts) revision(ctx context.Context, r *request[json.RawMessage]) (answer, error) {
	if !a.userAnswers(r.UserInfo.Name) || !mayHoldTemplate(*r.Object) {
		return answer{}, nil
	}
	if pod, whole := wholeTemplate(*r.Object); whole {
		references := gmsa.Under("data.spec.template.", gmsa.References(pod, a.Annotations))
		return a.decide(ctx, r.UserInfo, gmsa.Request{Namespace: r.Namespace, User: r.UserInfo.Name, UserReferences: references})
	}
	return a.all(ctx, r, "data.spec.template of a ControllerRevision is merged into the template of a workload", "change the template of the workload instead")
}

// all refuses a request whose template is not known, unless its user may use every GMSACredentialSpec.
func (a *managedAccounts) all(ctx context.Context, r *request[json.RawMessage], what, instead string) (answer, error) {
	all, err := a.rights.Ask(ctx, authority.Use(r.UserInfo, authority.GMSACredentialSpecs, r.Namespace, ""))
	if err != nil || all.Allowed {
		return answer{}, err
	}
	detail := all.Detail
	if detail != "" {
		detail = " (" + detail + ")"
	}
	return refused(decision.Forbidden(what + ", which may have any GMSACredentialSpec: user " + r.UserInfo.Name +
		" may not use all of them in namespace " + r.Namespace + detail + ": " + instead)), nil
}

// mayHoldTemplate reports whether a revision has a pod template for a reader that ignores the case of field names. Revisions of
// other kinds of workloads hold other data.
func mayHoldTemplate(object []byte) bool {
	var revision struct {
		Data map[string]any `json:"data"`
	}
	if json.Unmarshal(object, &revision) != nil {
		return false // data that is not an object is merged into nothing
	}
	for name, value := range revision.Data {
		spec, isObject := value.(map[string]any)
		if !isObject || !strings.EqualFold(name, "spec") {
			continue
		}
		for name := range spec {
			if strings.EqualFold(name, "template") {
				return true
			}
		}
	}
	return false
}

// wholeTemplate returns the pod of a revision that replaces the template, and nothing else, in the only form that Kubernetes'
// own controllers write. Names of fields are exact here: other readers may be less strict.
func wholeTemplate(object []byte) (*corev1.Pod, bool) {
	var revision, data, spec map[string]json.RawMessage
	if json.Unmarshal(object, &revision) != nil || json.Unmarshal(revision["data"], &data) != nil || len(data) != 1 ||
		json.Unmarshal(data["spec"], &spec) != nil || len(spec) != 1 {
		return nil, false
	}
	var fields map[string]any
	if json.Unmarshal(spec["template"], &fields) != nil || fields["$patch"] != "replace" {
		return nil, false
	}
	// Kubernetes reads it in this form, whose order counts where names differ in case only.
	sorted, err := json.Marshal(fields)
	var template corev1.PodTemplateSpec
	if err != nil || json.Unmarshal(sorted, &template) != nil {
		return nil, false
	}
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, true
}
