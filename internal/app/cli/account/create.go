package account

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	profiles "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/accounts"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/cli/trust"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/targets"
	trusts "github.com/credence-id/credence/internal/trust"
)

// create is "account create".
type create struct {
	*screen.Terminal
	connection *connection.Flags

	identity, template, dryRun, output string
	audiences, users, groups           []string
	enforce                            bool
}

func newCreate(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	c := &create{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a service account with its workload identity, profile and rights",
		Long: `Make a service account with its workload identity, profile and rights, and print what
credence trust prints for the identity. Objects that exist stay; if one differs from
what is wanted, nothing is written. An account that exists gets what it lacks.

--identity is the short form of a target:

  ` + strings.Join(targets.Shorts(), "\n  ") + `

The identity has the name of the account, which alone may use it. --profile refers to
a SecurityContextTemplate. --for and --for-group give users the right to run pods as
the account, as credence access grant does.

Before it writes anything, it has the API server try all of it out. Then it writes what limits
first and what gives rights last: the profile, the identity, the right to use it, the
account, the rights of users. If a step fails, what is there gives no more than
you wanted; run the command again to complete it.

You need ClusterRole credence:accounts:maker in the namespace, which credence enable
gives, and for --profile the verb use on the SecurityContextTemplate, which ClusterRole
credence:securitycontexttemplates:user has for all.`,
		Example: `  credence account create cart -n shop --identity aws:arn:aws:iam::123456789012:role/cart
  credence account create cart -n shop --profile restricted --enforce --for-group payments-team

  # Have the API server decide, and keep nothing
  credence account create cart -n shop --identity azure:CLIENT,tenantID=TENANT --dry-run

  # For Git
  credence account create cart -n shop --identity generic --audience backup --dry-run=client -o yaml`,
		Args:              command.ExactlyOne("the name of a service account"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.identity, "identity", "", "The target of a workload identity: TYPE[:VALUE[,FIELD=VALUE...]]; without it, the account has none")
	flags.StringArrayVar(&c.audiences, "audience", nil, "An audience of the identity's tokens; may be repeated; default: the usual one of the type")
	flags.StringVar(&c.template, "profile", "", "The SecurityContextTemplate of a profile; without it, no profile is made")
	flags.BoolVar(&c.enforce, "enforce", false, "The profile refuses pods with something weaker, instead of filling in what they leave open")
	flags.StringArrayVar(&c.users, "for", nil, "A user who may run pods as the account; may be repeated")
	flags.StringArrayVar(&c.groups, "for-group", nil, "A group whose users may run pods as the account; may be repeated")
	objects.DryRunFlag(cmd, &c.dryRun)
	command.Output(cmd, &c.output, "What to print: text (what was done, and how to trust the identity), json or yaml (the objects)", "text", "json", "yaml")
	command.CompleteFlag(cmd, "identity", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return targets.Types(), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
	command.CompleteFlag(cmd, "profile", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return kube.CompleteNames(cmd.Context(), (*cluster.API).SecurityContextTemplateNames, "")
	})
	return cmd
}

// account is what the command line wants.
func (c *create) account(cmd *cobra.Command, name string) (accounts.Account, error) {
	namespace, err := c.connection.Home(cmd)
	if err != nil {
		return accounts.Account{}, err
	}
	account := accounts.Account{Account: access.Account{Namespace: namespace, Name: name}, Template: c.template, Mode: profiles.ModeDefault}
	if c.enforce {
		account.Mode = profiles.ModeEnforce
	}
	switch err = account.Check(); {
	case err != nil:
	case name == access.All:
		err = fmt.Errorf("name one service account")
	case c.enforce && c.template == "":
		err = fmt.Errorf("--enforce needs --profile")
	case c.template != "":
		err = cluster.CheckName(c.template)
	}
	if err == nil && c.identity != "" {
		account.Target, err = c.target()
	} else if err == nil && len(c.audiences) > 0 {
		err = fmt.Errorf("--audience needs --identity")
	}
	if err != nil {
		return account, command.Usage(cmd, err.Error())
	}
	return account, nil
}

func (c *create) target() (*targets.Declared, error) {
	declared, err := targets.Declare(c.identity)
	if err != nil {
		return nil, fmt.Errorf("--identity: %w", err)
	}
	if len(c.audiences) > 0 {
		declared.Audiences = c.audiences
	}
	if len(declared.Audiences) == 0 {
		return nil, fmt.Errorf("an identity of type %s has no usual audience: give one by --audience", declared.Type)
	}
	return &declared, nil
}

// objects are in the order of their writing: what limits is first, what gives rights is last.
func (c *create) objects(account accounts.Account, users []rbacv1.Subject) []objects.Object {
	var all []objects.Object
	at := func(api, resource string) cluster.Place {
		return cluster.Place{API: api, Namespace: account.Namespace, Resource: resource, Name: account.Name}
	}
	profile := account.Profile()
	if profile != nil || account.Target != nil {
		stored := &profiles.ServiceAccountProfile{}
		all = append(all, objects.Object{
			At: at("/apis/"+profiles.SchemeGroupVersion.String(), "serviceaccountprofiles"), Kind: "serviceaccountprofile." + profiles.GroupName,
			Content: profile, Stored: stored, Fit: func() (bool, error) { return false, account.CheckProfile(stored) }, ReadOnly: profile == nil,
		})
	}
	if identity := account.Identity(); identity != nil {
		stored := &v1alpha1.WorkloadIdentity{}
		all = append(all, objects.Object{
			At: at("/apis/"+v1alpha1.SchemeGroupVersion.String(), "workloadidentities"), Kind: "workloadidentity." + v1alpha1.GroupName,
			Content: identity, Stored: stored, Fit: func() (bool, error) { return false, account.CheckIdentity(stored) },
		})
	}
	if account.Target != nil { // a pod that starts once the account names the identity may use it
		all = append(all, objects.Role(account.IdentityRole()), objects.Binding(account.IdentityBinding()))
	}
	stored, created := map[string]any{}, account.ServiceAccount()
	all = append(all, objects.Object{
		At: at("", "serviceaccounts"), Kind: "serviceaccount",
		Content: &created, Stored: &stored, Fit: func() (bool, error) { return account.AddIdentity(stored) },
	})
	if len(users) > 0 {
		all = append(all, objects.Use(account.Account, users...)...)
	}
	return all
}

func (c *create) run(cmd *cobra.Command, name string) error {
	if err := objects.CheckDryRun(cmd, c.dryRun); err != nil {
		return err
	}
	account, err := c.account(cmd, name)
	if err != nil {
		return err
	}
	users, err := subjects(cmd, c.users, c.groups)
	if err != nil {
		return err
	}
	api, err := c.connection.Open(c.ErrOut)
	if err != nil {
		return err
	}
	program := cmd.Root().DisplayName()
	writer := objects.Writer{API: api, DryRun: c.dryRun, Program: program,
		Hint: fmt.Sprintf("to make accounts in namespace %s, a user needs ClusterRole %s there, and for --profile the verb use on the SecurityContextTemplate: a cluster admin gives the first by %s enable %[1]s --maker USER", account.Namespace, accounts.MakerRole, program)}
	all := c.objects(account, users)
	stop := c.WaitingFor("the API server " + api.Host)
	err = writer.Apply(cmd.Context(), all)
	stop()
	if err != nil {
		return err
	}
	if c.output != "text" {
		return objects.Print(c.Out, c.output, objects.Contents(all))
	}
	if _, err := io.WriteString(c.Out, writer.Lines(all)); err != nil {
		return err
	}
	for _, o := range all {
		if identity, ok := o.Content.(*v1alpha1.WorkloadIdentity); ok && c.dryRun == "none" {
			return c.trust(program, identity)
		}
	}
	return nil
}

// trust prints what "trust" prints for an identity, or how to have it printed.
func (c *create) trust(program string, identity *v1alpha1.WorkloadIdentity) error {
	systems := targets.TrustingType(identity.Spec.TargetSystem.Type)
	if len(systems) != 1 {
		_, err := fmt.Fprintf(c.ErrOut, "note: several systems may trust the identity; see how: %s trust SYSTEM %s -n %s, where SYSTEM is %s\n",
			program, identity.Name, identity.Namespace, strings.Join(systems, " or "))
		return err
	}
	text, err := targets.WriteTrust(systems[0], trusts.Commands, trust.Identity(identity))
	if err != nil {
		return &command.Failure{
			Line: fmt.Sprintf("error: the account is complete, but %s can't be configured to trust its identity: %v", systems[0], err),
			Code: command.ExitRefused, Err: err,
		}
	}
	_, err = fmt.Fprintf(c.Out, "\n%s", text)
	return err
}
