package account

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	profiles "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// list is "account list".
type list struct {
	*screen.Terminal
	connection *connection.Flags

	all, usable bool
	output      string
}

func newList(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	l := &list{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List service accounts: which of them you may use, and for what",
		Long: `List the service accounts of a namespace: whether you have the right to use each of
them, its workload identities, its profile, and its name outside of the cluster. The
right counts in namespaces with the label identity.credence.dev/account-use.

The cluster decides about you (SelfSubjectRulesReview), which needs no right. If you may
not list the accounts, those are listed that your rights name.`,
		Example: `  credence account list -n shop --usable
  credence account list -A -o json`,
		Args:        command.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "List the accounts of all namespaces")
	cmd.Flags().BoolVar(&l.usable, "usable", false, "List only those that you may use")
	command.Output(cmd, &l.output, "What to print: table, json or yaml", "table", "json", "yaml")
	return cmd
}

// listed is an account of the list.
type listed struct {
	Namespace          string   `json:"namespace"`
	Name               string   `json:"name"`
	Usable             bool     `json:"usable"`
	WorkloadIdentities []string `json:"workloadIdentities"` // nil: not known
	Profile            *bool    `json:"profile"`            // whether it has one; nil: not known
	Template           string   `json:"template"`           // of the profile; empty: none
	Mode               string   `json:"mode"`               // of the profile's security context; empty: it has none
	Username           string   `json:"username"`
}

// identities, profile and username are the columns of the table.
func (a *listed) identities() string {
	if a.WorkloadIdentities == nil {
		return "?"
	}
	return wording.OrDash(strings.Join(a.WorkloadIdentities, ","))
}

func (a *listed) profile() string {
	switch {
	case a.Profile == nil:
		return "?"
	case !*a.Profile:
		return "-"
	case a.Mode == "":
		return "yes"
	}
	return cmp.Or(a.Template, "inline") + " " + a.Mode
}

func (a *listed) username() string {
	if a.Profile == nil {
		return "?"
	}
	return wording.OrDash(a.Username)
}

// accountList is what "account list" prints.
type accountList struct {
	Accounts []*listed `json:"accounts"`
	Notes    []string  `json:"notes"`
}

func (l *list) run(cmd *cobra.Command) error {
	namespace, _, err := l.connection.Scope(cmd, l.all)
	if err != nil {
		return err
	}
	api, err := l.connection.Open(l.ErrOut)
	if err != nil {
		return err
	}
	stop := l.WaitingFor("the API server " + api.Host)
	found, err := read(cmd.Context(), api, namespace)
	stop()
	if err != nil {
		return connection.Request{Namespace: namespace, All: l.all, Program: cmd.Root().DisplayName()}.ObjectFailure("list service accounts", err)
	}
	if l.usable {
		found.Accounts = slices.DeleteFunc(found.Accounts, func(a *listed) bool { return !a.Usable })
	}
	if l.output != "table" {
		return screen.Object(l.Out, l.output, found)
	}
	err = l.print(found)
	l.Notes(found.Notes)
	return err
}

// read reads the accounts of a namespace, or of all (empty).
func read(ctx context.Context, api *cluster.API, namespace string) (*accountList, error) {
	found := &accountList{Accounts: []*listed{}, Notes: []string{}}
	err := cluster.Each(ctx, api, cluster.Listing{Namespace: namespace, Resource: "serviceaccounts", Metadata: true}, func(a *metav1.PartialObjectMetadata) {
		identities, err := tokensecret.ParseIdentities(a.Annotations[v1alpha1.AnnotationAccountIdentities])
		if err != nil {
			found.Notes = append(found.Notes, fmt.Sprintf("pods of service account %s/%s are refused: its annotation %s %v", a.Namespace, a.Name, v1alpha1.AnnotationAccountIdentities, err))
		} else if identities == nil {
			identities = []string{}
		}
		found.Accounts = append(found.Accounts, &listed{Namespace: a.Namespace, Name: a.Name, WorkloadIdentities: identities})
	})
	if apierrors.IsForbidden(err) && namespace != "" {
		found.Notes = append(found.Notes, fmt.Sprintf("you may not list the service accounts of namespace %s: there may be others than those that your rights name, and identities in annotations are not known", namespace))
		err = named(ctx, api, namespace, found)
	}
	if err == nil {
		err = review(ctx, api, found)
	}
	if err == nil {
		err = addProfiles(ctx, api, namespace, found)
	}
	return found, err
}

var use = access.Request{Verb: "use", Resource: authority.ServiceAccounts.Resource}

// named adds the accounts that rights of the caller name.
func named(ctx context.Context, api *cluster.API, namespace string, found *accountList) error {
	rules, _, err := api.RulesSelf(ctx, namespace)
	var all []string
	for _, rule := range rules {
		anyOf := use
		if anyOf.AnyName = true; anyOf.AllowedBy([]rbacv1.PolicyRule{rule}) {
			all = append(all, rule.ResourceNames...)
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(all))) {
		found.Accounts = append(found.Accounts, &listed{Namespace: namespace, Name: name})
	}
	return err
}

// review finds out which accounts the caller may use: by one review for each namespace, or for each account where the cluster's authorizer can't
// list rights.
func review(ctx context.Context, api *cluster.API, found *accountList) error {
	type rights struct {
		rules      []rbacv1.PolicyRule
		incomplete bool
	}
	known := map[string]rights{}
	for _, a := range found.Accounts {
		r, ok := known[a.Namespace]
		if !ok {
			var err error
			if r.rules, r.incomplete, err = api.RulesSelf(ctx, a.Namespace); err != nil {
				return err
			}
			known[a.Namespace] = r
		}
		request := use
		request.Name = a.Name
		if a.Usable = request.AllowedBy(r.rules); a.Usable || !r.incomplete {
			continue
		}
		question := authority.Use(authority.Subject{}, authority.ServiceAccounts, a.Namespace, a.Name)
		status, err := api.ReviewSelf(ctx, *question.Spec().ResourceAttributes)
		if err != nil {
			return err
		}
		a.Usable = status.Allowed && !status.Denied
	}
	return nil
}

// addProfiles adds what the profiles of accounts have. A profile's identities take the place of the annotation's.
func addProfiles(ctx context.Context, api *cluster.API, namespace string, found *accountList) error {
	byName := map[access.Account]*listed{}
	for _, a := range found.Accounts {
		byName[access.Account{Namespace: a.Namespace, Name: a.Name}] = a
	}
	listing := cluster.Listing{API: "/apis/" + profiles.SchemeGroupVersion.String(), Namespace: namespace, Resource: "serviceaccountprofiles"}
	err := cluster.Each(ctx, api, listing, func(p *profiles.ServiceAccountProfile) {
		a := byName[access.Account{Namespace: p.Namespace, Name: p.Name}]
		if a == nil {
			return
		}
		a.Profile, a.Username = new(true), p.Status.Username
		if p.Spec.WorkloadIdentities != nil {
			a.WorkloadIdentities = p.Spec.WorkloadIdentities
		}
		if context := p.Spec.SecurityContext; context != nil {
			a.Mode, a.Template = string(context.Mode), profile.TemplateOf(p)
		}
	})
	unknown := apierrors.IsForbidden(err)
	switch {
	case unknown:
		found.Notes = append(found.Notes, "profiles were not read: you may not list serviceaccountprofiles. They, their identities and usernames are not known")
	case apierrors.IsNotFound(err):
		found.Notes = append(found.Notes, "the cluster has no serviceaccountprofiles")
	case err != nil:
		return err
	}
	for _, a := range found.Accounts {
		switch {
		case unknown && len(a.WorkloadIdentities) == 0:
			a.WorkloadIdentities = nil // the profile may have some
		case !unknown && a.Profile == nil:
			a.Profile = new(false)
		}
	}
	return nil
}

func (l *list) print(found *accountList) error {
	if len(found.Accounts) == 0 {
		_, err := io.WriteString(l.ErrOut, "no accounts found\n")
		return err
	}
	rows := [][]string{{"NAME", "USABLE", "IDENTITIES", "PROFILE", "USERNAME"}}
	for _, a := range found.Accounts {
		usable := "no"
		if a.Usable {
			usable = "yes"
		}
		rows = append(rows, []string{a.Name, usable, a.identities(), a.profile(), a.username()})
	}
	if l.all {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
		for i, a := range found.Accounts {
			rows[i+1] = append([]string{a.Namespace}, rows[i+1]...)
		}
	}
	return screen.Table(l.Out, rows...)
}
