package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	api "github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// list is "cluster list".
type list struct {
	*screen.Terminal
	connection *connection.Flags
	output     string
}

func newList(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	l := &list{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the clusters that have tokens of this cluster's identities",
		Long: `List the clusters that have tokens of the identities of this one: when their users were
last seen (given a token, or reporting), give or take some minutes, the version of their
agent, and what the agents have reported: when last, of how many Secrets, when the first
of their tokens expires, and the last failure. Reports are those of identities that you
may list.`,
		Example:     `  credence cluster list`,
		Args:        command.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	command.Output(cmd, &l.output, "What to print: table, json or yaml", "table", "json", "yaml")
	return cmd
}

// listed is a cluster of the list.
type listed struct {
	Name       string       `json:"name"`
	Users      []string     `json:"users"`
	Namespaces []string     `json:"namespaces"`
	Secrets    int32        `json:"secrets"`
	Delivered  int32        `json:"delivered"`
	Seen       *metav1.Time `json:"seen,omitempty"`     // give or take some minutes
	Version    string       `json:"version,omitempty"`  // of the agent
	Reported   *metav1.Time `json:"reported,omitempty"` // the last report
	Oldest     *metav1.Time `json:"oldest,omitempty"`   // when the oldest token was issued
	Expires    *metav1.Time `json:"expires,omitempty"`  // the first token that does
	Failure    string       `json:"failure,omitempty"`  // of the last report that has one

	failed time.Time
}

// clusterList is what "cluster list" prints.
type clusterList struct {
	Clusters []*listed `json:"clusters"`
	Notes    []string  `json:"notes"`
}

func (l *list) run(cmd *cobra.Command) error {
	opened, err := l.connection.Open(l.ErrOut)
	if err != nil {
		return err
	}
	stop := l.WaitingFor("the API server " + opened.Host)
	found, err := find(cmd.Context(), opened)
	stop()
	if err != nil {
		return failure(cmd, "list workload clusters", err)
	}
	if l.output != "table" {
		return screen.Object(l.Out, l.output, found)
	}
	rows := [][]string{{"NAME", "NAMESPACES", "DELIVERED", "SEEN", "VERSION", "REPORTED", "OLDEST", "EXPIRES", "FAILURE"}}
	for _, c := range found.Clusters {
		rows = append(rows, []string{
			c.Name, wording.OrDash(strings.Join(c.Namespaces, ",")), fmt.Sprintf("%d/%d", c.Delivered, c.Secrets), at(c.Seen), wording.OrDash(c.Version), at(c.Reported), at(c.Oldest), at(c.Expires), wording.OrDash(wording.OneLine(c.Failure)),
		})
	}
	if err := screen.Table(l.Out, rows...); err != nil {
		return err
	}
	printNotes(l.ErrOut, found.Notes...)
	return nil
}

func at(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// find reads the clusters, and adds up what their users have reported of each identity.
func find(ctx context.Context, from *api.API) (*clusterList, error) {
	found, byUser := &clusterList{Clusters: []*listed{}, Notes: []string{}}, map[string]*listed{}
	err := api.Each(ctx, from, api.Listing{API: identityAPI, Resource: "workloadclusters"}, func(c *v1alpha1.WorkloadCluster) {
		one := &listed{Name: c.Name, Users: slices.Concat([]string{}, c.Spec.Users), Namespaces: slices.Concat([]string{}, c.Spec.Identities.Namespaces), Seen: c.Status.LastSeenTime, Version: c.Status.AgentVersion}
		found.Clusters = append(found.Clusters, one)
		for _, user := range c.Spec.Users {
			byUser[user] = one
		}
	})
	if err != nil {
		return nil, err
	}
	err = api.Each(ctx, from, api.Identities(""), func(wi *authenticationv1alpha1.WorkloadIdentity) {
		for _, delivery := range wi.Status.Deliveries {
			if c := byUser[delivery.Reporter]; c != nil {
				c.add(delivery)
			}
		}
	})
	if apierrors.IsForbidden(err) {
		found.Notes, err = append(found.Notes, "you may not list the identities of all namespaces: what agents have reported of them is not shown"), nil
	}
	return found, err
}

func (c *listed) add(d authenticationv1alpha1.Delivery) {
	c.Secrets, c.Delivered = c.Secrets+d.Secrets, c.Delivered+d.Delivered
	if c.Reported == nil || c.Reported.Before(&d.ReportTime) {
		c.Reported = &d.ReportTime
	}
	if d.Expires != nil && (c.Expires == nil || d.Expires.Before(c.Expires)) {
		c.Expires = d.Expires
	}
	if d.Oldest != nil && (c.Oldest == nil || d.Oldest.Before(c.Oldest)) {
		c.Oldest = d.Oldest
	}
	if d.Failure != nil && !d.ReportTime.Time.Before(c.failed) {
		c.Failure, c.failed = d.Failure.Reason+": "+d.Failure.Message, d.ReportTime.Time
	}
}
