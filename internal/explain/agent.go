package explain

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
)

const (
	// agentRole lets an agent have tokens of identities; deploy/base installs it.
	agentRole = "credence:agent:identities"
	// granterRole lets people bind these roles in a namespace of theirs; deploy/base installs it.
	granterRole = "credence:workloadidentities:granter"
)

// AgentMay reports whether the agent may have tokens of the identities of a namespace. That is not known where these are in another cluster, in which
// the agent may be any user, nor to users who may not create subjectaccessreviews.
func AgentMay(ctx context.Context, both cluster.Both, namespace string) (may, known bool, err error) {
	if both.Identity != both.Workload {
		return false, false, nil
	}
	agent := rights.Agent().In("system:authenticated")
	for _, right := range []authority.Question{
		{Verb: "get", Object: authority.Object{Kind: authority.WorkloadIdentities}},
		{Verb: "create", Object: authority.Object{Kind: authority.WorkloadIdentityTokens}},
	} {
		right.Subject, right.Object.Namespace = agent, namespace
		answer, err := authority.Ask(ctx, both.Identity, right)
		switch {
		case apierrors.IsForbidden(err):
			return false, false, nil
		case err != nil:
			return false, false, err
		case !answer.Allowed:
			return false, true, nil
		}
	}
	return true, true, nil
}

// LetAgent is how the agent gets that right.
func LetAgent(namespace string) string {
	return fmt.Sprintf("A cluster admin sets the namespace up with: credence enable %s. A person with ClusterRole %s in that namespace allows it with: kubectl create rolebinding credence-agent -n %s --clusterrole=%s --serviceaccount=%s:%s",
		namespace, granterRole, namespace, agentRole, rights.SystemNamespace, rights.AgentAccount)
}
