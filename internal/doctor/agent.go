package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/wording"
)

// checkAgentRights looks for namespaces with the label whose identities the agent may not have tokens of: in one namespace, or in all of them where
// it is empty. It only warns: the namespaces may have no identities yet.
func checkAgentRights(ctx context.Context, found *Diagnosis, both cluster.Both, namespace string, enabled map[string]bool) {
	var denied []string
	bound := 0
	for _, name := range slices.Sorted(maps.Keys(enabled)) {
		if !enabled[name] || rights.Reserved(name) || namespace != "" && name != namespace {
			continue
		}
		may, known, err := explain.AgentMay(ctx, both, name)
		switch {
		case err != nil:
			found.add("agent-rights", Fail, "", "review the rights of the agent: %v", err)
			return
		case !known:
			found.skip("agent-rights", "the rights of the agent to identities are not known: they are in another cluster, or you may not create subjectaccessreviews")
			return
		case may:
			bound++
		default:
			denied = append(denied, name)
		}
	}
	if len(denied) > 0 {
		found.add("agent-rights", Warn, explain.LetAgent("NAMESPACE"), "namespaces have the label, and the agent may not have tokens of their identities: %s", wording.Some(denied))
	}
	if bound > 0 {
		found.pass("agent-rights", "the agent may have tokens of the identities of %s", wording.Plural(bound, "namespace", "namespaces"))
	}
}
