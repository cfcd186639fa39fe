package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// can is "access can": it explains whether a user may use an account.
type can struct {
	*screen.Terminal
	connection *connection.Flags

	group  bool
	groups []string
	output string
}

func newCan(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	c := &can{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "can USER ACCOUNT",
		Short: "Report whether a user may use a service account, and by which binding",
		Long: `Report whether a user has the right to use a service account, by which RoleBindings, and
whether the namespace requires it.

The cluster decides: about you by your own groups (SelfSubjectAccessReview), about
others by a LocalSubjectAccessReview, which an admin of the namespace may create. The
API server does not know in which groups another user is: name them by --in-group.
Bindings are those that you may read.

Exit codes: 0 the user may use the account, 1 may not, or you may not review it, 3 the
API server could not be reached.`,
		Example: `  credence access can jane@example.com cart -n shop --in-group payments-team
  credence access can --group payments-team cart -n shop`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return command.Usage(cmd, fmt.Sprintf("expected a USER and an ACCOUNT, got %s", wording.Plural(len(args), "argument", "arguments")))
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0], args[1]) },
		ValidArgsFunction: completeAccounts(kube, 1, 2),
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVar(&c.group, "group", false, "USER is the name of a group")
	cmd.Flags().StringArrayVar(&c.groups, "in-group", nil, "A group that the user is in; may be repeated")
	command.Output(cmd, &c.output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}

// canAnswer is what "access can" prints.
type canAnswer struct {
	Subject        rbacv1.Subject  `json:"subject"`
	Groups         []string        `json:"groups"`
	Namespace      string          `json:"namespace"`
	ServiceAccount string          `json:"serviceAccount"`
	Allowed        bool            `json:"allowed"`
	Reason         string          `json:"reason"`
	By             []access.Source `json:"by"`
	Mode           string          `json:"mode"`
	Notes          []string        `json:"notes"`
}

func (c *can) run(cmd *cobra.Command, user, name string) error {
	account, err := oneAccount(cmd, c.connection, name)
	if err != nil {
		return err
	}
	subject, err := access.Subject(user, c.group)
	if err != nil {
		return command.Usage(cmd, err.Error())
	}
	api, err := c.connection.Open(c.ErrOut)
	if err != nil {
		return err
	}
	stop := c.WaitingFor("the API server " + api.Host)
	answer, err := c.find(cmd.Context(), &facts{api: api, account: account}, subject)
	stop()
	if err != nil {
		return connection.Request{Namespace: account.Namespace, Program: cmd.Root().DisplayName()}.ObjectFailure("review the right to use service account "+account.String(), err)
	}
	if c.output != "text" {
		err = screen.Object(c.Out, c.output, answer)
	} else {
		c.print(answer, cmd.Root().DisplayName())
	}
	if err == nil && !answer.Allowed {
		return &command.Failure{Code: command.ExitRefused}
	}
	return err
}

func (c *can) find(ctx context.Context, f *facts, subject rbacv1.Subject) (*canAnswer, error) {
	answer := &canAnswer{Subject: subject, Namespace: f.account.Namespace, ServiceAccount: f.account.Name, By: []access.Source{}}
	answer.Groups = append(access.Groups(subject), c.groups...)
	review, err := c.review(ctx, f, answer)
	if err != nil {
		return nil, err
	}
	answer.Allowed, answer.Reason = review.Allowed && !review.Denied, review.Reason
	if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == f.account.Namespace && subject.Name == f.account.Name {
		answer.Allowed, answer.Reason = true, "it is the account itself, which policies let use itself"
	}
	if answer.Mode, err = f.mode(ctx); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	rights, err := f.rights(ctx)
	if err != nil {
		return nil, err
	}
	use := access.Request{Verb: "use", Resource: "serviceaccounts", Name: f.account.Name}
	answer.By = append(answer.By, rights.Sources(use, subject, answer.Groups)...)
	if answer.Notes = []string{}; len(answer.By) == 0 || !answer.Allowed {
		// Bindings that could not be read matter only where none is the reason.
		answer.Notes = append(answer.Notes, f.notes...)
	}
	return answer, nil
}

// review has the cluster decide. About the caller it knows the groups, and needs no right.
func (c *can) review(ctx context.Context, f *facts, answer *canAnswer) (authorizationv1.SubjectAccessReviewStatus, error) {
	subject := authority.Subject{Groups: answer.Groups}
	if answer.Subject.Kind != rbacv1.GroupKind {
		subject.Name = access.UserName(answer.Subject)
	}
	spec := authority.Use(subject, authority.ServiceAccounts, f.account.Namespace, f.account.Name).Spec()
	if answer.Subject.Kind != rbacv1.GroupKind && len(c.groups) == 0 {
		var self authenticationv1.SelfSubjectReview
		self.APIVersion, self.Kind = "authentication.k8s.io/v1", "SelfSubjectReview"
		err := f.api.Create(ctx, cluster.Place{API: "/apis/authentication.k8s.io/v1", Resource: "selfsubjectreviews"}, self, &self)
		if err == nil && self.Status.UserInfo.Username == subject.Name {
			answer.Groups = self.Status.UserInfo.Groups
			return f.api.ReviewSelf(ctx, *spec.ResourceAttributes)
		}
	}
	return f.api.ReviewLocal(ctx, spec)
}

func (c *can) print(answer *canAnswer, program string) {
	verb := "may"
	if !answer.Allowed {
		verb = "may not"
	}
	account := answer.Namespace + "/" + answer.ServiceAccount
	line := func(key, text string) { fmt.Fprintf(c.Out, "  %-6s  %s\n", key, wording.OneLine(text)) }
	fmt.Fprintf(c.Out, "%s %s use service account %s\n", wording.OneLine(objects.SubjectText(answer.Subject)), verb, account)
	for _, source := range answer.By {
		line("by", source.String())
	}
	if answer.Allowed && len(answer.By) == 0 {
		line("by", wording.OrDash(answer.Reason))
	}
	line("groups", wording.OrDash(wording.Some(slices.Clone(answer.Groups))))
	line("mode", modeText(answer.Mode))
	if !answer.Allowed {
		group := ""
		if answer.Subject.Kind == rbacv1.GroupKind {
			group = "--group "
		}
		line("right", fmt.Sprintf("an admin of the namespace gives it by: %s access grant -n %s %s-- %s %s", program, answer.Namespace, group, wording.Argument(access.UserName(answer.Subject)), answer.ServiceAccount))
	}
	c.Notes(answer.Notes)
}
