package workloadcluster

import (
	"strings"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var table = stored.Table[*v1alpha1.WorkloadCluster]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster."},
		{Name: "Namespaces", Type: "string", Description: "Namespaces whose identities the cluster may have."},
		{Name: "Seen", Type: "string", Description: "Time since a user of the cluster was given a token or reported a delivery, give or take some minutes."},
		{Name: "Age", Type: "string", Description: "Time since the cluster was created here."},
		{Name: "Users", Type: "string", Priority: 1, Description: "Users of the cluster's agent and webhook."},
		{Name: "Version", Type: "string", Priority: 1, Description: "Version of the cluster's agent."},
	},
	Cells: func(cluster *v1alpha1.WorkloadCluster, name, age string) []any {
		spec, seen := cluster.Spec, "never"
		if at := cluster.Status.LastSeenTime; at != nil {
			seen = metatable.ConvertToHumanReadableDateType(*at)
		}
		return []any{name, strings.Join(spec.Identities.Namespaces, ","), seen, age, strings.Join(spec.Users, ","), cluster.Status.AgentVersion}
	},
}
