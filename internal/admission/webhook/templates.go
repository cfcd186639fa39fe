package webhook

import (
	"context"
	"encoding/json"

	"github.com/credence-id/credence/internal/admission/templates"
)

// templateReviews warns of workloads whose pods will be refused. It refuses nothing, also after a failed read: the
// pods are decided on when they are created.
func templateReviews(f *podRules) decider[json.RawMessage] {
	return func(ctx context.Context, r *request[json.RawMessage]) (answer, error) {
		if r.Object == nil || r.SubResource != "" {
			return wrong("this webhook is for workloads, not for %s", r.about()), nil
		}
		var old []byte
		if r.OldObject != nil {
			old = *r.OldObject
		}
		workload, err := templates.Find(*r.Object, old)
		if err != nil {
			return wrong("%s: %s", r.about(), err), nil
		}
		if workload == nil {
			return answer{}, nil
		}
		result, err := f.of(ctx, r.Namespace, workload.Pod, nil)
		if err != nil {
			return answer{warnings: []string{"credence could not find out whether pods of " + workload.Kind + " " + workload.Name + " will be admitted: " + err.Error()}}, nil
		}
		return answer{warnings: workload.Warnings(result)}, nil
	}
}
