package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/credence-id/credence/internal/admission/templates"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/gmsa"
)

// template warns of workloads whose pods will be refused. If users need the right themselves, it refuses those of users
// without it: their pods are made by a controller, whose user is not their author. An owner reference is
// written by the author, and is not relied on. So it does where a change brings an old template back.
func (a *managedAccounts) template(ctx context.Context, r *request[json.RawMessage]) (answer, error) {
	if r.Object == nil || r.SubResource != "" && r.SubResource != "scale" {
		return wrong("this webhook is for workloads, not for %s", r.about()), nil
	}
	if r.Resource.Resource == "controllerrevisions" {
		return a.revision(ctx, r)
	}
	var object, old []byte = *r.Object, nil
	if r.OldObject != nil {
		old = *r.OldObject
	}
	rollback, grown, err := templates.Revived(object, old)
	switch checked := a.userAnswers(r.UserInfo.Name); {
	case err != nil:
		return wrong("%s: %s", r.about(), err), nil
	case rollback && checked:
		return a.all(ctx, r, "annotation "+appsv1.DeprecatedRollbackTo+" of a Deployment goes back to a template", "change the template instead")
	case r.SubResource == "scale" && (!grown || !checked):
		return answer{}, nil
	case r.SubResource == "scale":
		if object, err = a.workloads.Get(ctx, r.Resource.Resource, r.Namespace, r.Name); err != nil {
			return answer{}, fmt.Errorf("read the template of %s %s/%s: %w", r.Resource.Resource, r.Namespace, r.Name, err)
		}
	}
	if grown {
		old = nil // its template counts as written
	}
	workload, err := templates.Changed(object, old)
	if err != nil {
		return wrong("%s: %s", r.about(), err), nil
	}
	if workload == nil {
		return answer{}, nil
	}
	references := gmsa.Under(workload.Path, gmsa.References(workload.Pod, a.Annotations))
	if len(references) == 0 {
		return answer{}, nil
	}
	if a.userAnswers(r.UserInfo.Name) {
		refusal, err := a.decide(ctx, r.UserInfo, gmsa.Request{Namespace: r.Namespace, User: r.UserInfo.Name, UserReferences: references})
		if err != nil || refusal.code != 0 {
			return refusal, err
		}
	}
	if workload.Owned {
		return answer{}, nil
	}
	decision, err := a.foresee(ctx, r, workload, references)
	if err != nil {
		return answer{warnings: []string{"credence could not find out whether pods of " + workload.Kind + " " + workload.Name + " will be admitted: " + err.Error()}}, nil
	}
	return answer{warnings: workload.Warnings(decision)}, nil
}

// foresee is what will be decided about the pods of a workload.
func (a *managedAccounts) foresee(ctx context.Context, r *request[json.RawMessage], workload *templates.Workload, references []gmsa.Reference) (decision.Result, error) {
	names, denial := gmsa.Names(references)
	if denial != nil {
		return decision.Result{Denial: denial}, nil
	}
	q := gmsa.Request{Namespace: r.Namespace, ServiceAccount: workload.Pod.Spec.ServiceAccountName, References: references}
	if err := a.find(ctx, &q, names); err != nil {
		return decision.Result{}, err
	}
	q.References = gmsa.Filled(references, q.Specs)
	return gmsa.Authorize(q), nil
}
