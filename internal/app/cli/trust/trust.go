package trust

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/profile/username"
	"github.com/credence-id/credence/internal/target/kubernetes"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/trust"
	"github.com/credence-id/credence/internal/wording"
)

// trustCommand is "trust": it prints the configuration of the system that is to trust an identity.
type trustCommand struct {
	*screen.Terminal
	connection *connection.Flags

	output                     string
	provider                   bool
	username, cluster, account string
	object                     string
}

// New is "trust".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	c := &trustCommand{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "trust [SYSTEM] IDENTITY...",
		Short: "Print the commands, or Terraform, that make a cloud, a cluster or Vault trust an identity",
		Long: `Print the other side of the WorkloadIdentity IDENTITY: the commands, or with
-o terraform the resources, that make a system accept its tokens. Issuer, subject
and audiences are those of the identity as it is now; the subject is exact, never
a pattern. Nothing is run: read it, and run it where you may.

SYSTEM is ` + strings.Join(targets.Trusting(), ", ") + `. Without it, it is
the identity's own type. An identity of type generic, or of a type without an
adapter, may be trusted by kubernetes and by vault; choose one.

The commands are for a POSIX shell. Values are quoted: nothing that stands in an
identity can become a command.

The parts that all identities of an issuer share, such as the OIDC provider of an AWS
account, are among the commands. In Terraform they are apart, as they can be there
once: --provider prints it, and without that what is of the identity alone. Apply
the provider first: the identities look it up. It has the audiences of all IDENTITIES
that are named with --provider; without that, name one.

With --username, a cluster knows the bearers of tokens by the username of the
service account in whose name a token is, whichever identity it is of, and takes no
others. Only tokens with a context have one, of accounts with a profile.

By subject and audience, an identity is trusted in the hands of all who may have its
tokens: every WorkloadCluster that may is noted. With --cluster, gcp, kubernetes and
vault take those of that cluster alone. With --account, they take those in the name of
a service account alone: with --cluster of that cluster, as its agent asserts, without
it of the identity cluster. With --context-object, they take those on behalf of an
object of a ContextKind alone, by its uid: with --cluster only where that cluster has
them, without it also on other clusters that the object is on, and for persons. The
other clouds have no such conditions: the identity is refused there.`,
		Example: `  credence trust my-app -n my-team
  credence trust vault my-app -n my-team

  # A cluster that knows the service account by its username
  credence trust kubernetes my-app -n my-team --username \
    "$(kubectl get saprofile my-app -n my-team -o jsonpath={.status.username})"

  # One service account of one cluster that has joined
  credence trust vault my-app -n my-team --cluster east --account shop/cart

  # One Shoot, in one seed
  credence trust kubernetes bar -n garden-local --cluster east \
    --context-object shoot/garden-local/foo

  # For Terraform
  credence trust my-app other-app -n my-team -o terraform --provider > issuer/main.tf
  credence trust my-app -n my-team -o terraform > identities/my-app.tf`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 && !c.provider {
				return command.Usage(cmd, fmt.Sprintf("wanted are one or two arguments, a SYSTEM if it is not the identity's own, and the name of an IDENTITY, or of several with --provider; there are %d", len(args)))
			}
			return nil
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	command.Output(cmd, &c.output, "What to print: commands, terraform, or json, which has the commands and what they are made of", string(trust.Commands), string(trust.Terraform), "json")
	cmd.Flags().BoolVar(&c.provider, "provider", false, "With -o terraform: print what all identities of the issuer share, instead of the identity's own")
	cmd.Flags().StringVar(&c.username, "username", "", "For kubernetes: know the bearers of tokens by the username of the service account in whose name the tokens are, and let this one in")
	cmd.Flags().StringVar(&c.cluster, "cluster", "", "For gcp, kubernetes and vault: take the tokens of this WorkloadCluster alone")
	cmd.Flags().StringVar(&c.account, "account", "", "For gcp, kubernetes and vault: take the tokens in the name of this service account alone, NAMESPACE/NAME; of the --cluster, or without one of the identity cluster")
	cmd.Flags().StringVar(&c.object, "context-object", "", "For gcp, kubernetes and vault: take the tokens on behalf of this object alone, KIND/NAMESPACE/NAME, or KIND/NAME of one without a namespace; a ContextKind has its kind")
	command.CompleteFlag(cmd, "cluster", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return kube.CompleteNames(cmd.Context(), (*cluster.API).WorkloadClusterNames, "")
	})
	command.CompleteFlag(cmd, "account", cobra.NoFileCompletions)
	command.CompleteFlag(cmd, "context-object", cobra.NoFileCompletions)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			names, directive := kube.CompleteNames(cmd.Context(), (*cluster.API).IdentityNames, "")
			return append(targets.Trusting(), names...), directive
		case c.provider, len(args) == 1 && slices.Contains(targets.Trusting(), args[0]):
			return kube.CompleteNames(cmd.Context(), (*cluster.API).IdentityNames, "")
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func (c *trustCommand) run(cmd *cobra.Command, args []string) error {
	form := trust.Form(c.output)
	if c.output == "json" {
		form = trust.Commands
	}
	if c.provider {
		if form != trust.Terraform {
			return command.Usage(cmd, "--provider needs -o terraform: the commands have what all identities of the issuer share already")
		}
		form = trust.Provider
	}
	if c.username != "" {
		if err := username.CheckGiven(c.username); err != nil {
			return command.Usage(cmd, fmt.Sprintf("invalid --username %q: %v", c.username, err))
		}
	}
	bearer, err := c.bearer(cmd)
	if err != nil {
		return err
	}
	var context object
	if c.object != "" {
		if context, err = parseObject(c.object); err != nil {
			return command.Usage(cmd, err.Error())
		}
	}
	system, names := "", args
	if len(args) > 1 && (slices.Contains(targets.Trusting(), args[0]) || !c.provider) {
		system, names = args[0], args[1:]
	}
	for _, name := range names {
		if err := cluster.CheckName(name); err != nil {
			return command.Usage(cmd, err.Error())
		}
	}
	if system != "" && !slices.Contains(targets.Trusting(), system) {
		return command.Usage(cmd, fmt.Sprintf("%q is not a target system with commands: choose one of %s", system, strings.Join(targets.Trusting(), ", ")))
	}
	namespace, err := c.connection.Namespace()
	if err != nil {
		return err
	}
	api, err := c.connection.Open(c.ErrOut)
	if err != nil {
		return err
	}
	var identities []trust.Identity
	for _, name := range names {
		stop := c.WaitingFor("the API server " + api.Host)
		identity, err := api.Identity(cmd.Context(), namespace, name)
		stop()
		if err != nil {
			request := connection.Request{Namespace: namespace, Name: name, Program: cmd.Root().DisplayName()}
			return request.Failure(fmt.Sprintf("read WorkloadIdentity %s/%s", namespace, name), err)
		}
		identities = append(identities, Identity(identity))
	}
	if system == "" {
		if system, err = systemOf(cmd, identities[0]); err != nil {
			return err
		}
	}
	if c.username != "" {
		if system != kubernetes.Type {
			return command.Usage(cmd, fmt.Sprintf("--username is for kubernetes: %s knows identities by their subject", system))
		}
		for i := range identities {
			identities[i].Username = c.username
		}
	}
	if c.object != "" {
		if bearer.Object, err = context.find(cmd, api); err != nil {
			return err
		}
	}
	if bearer != (trust.Bearer{}) && len(identities) > 1 {
		return command.Usage(cmd, "--cluster, --account and --context-object are for one identity: the others that share its provider would be refused")
	}
	identities[0].Bearer = bearer
	if bearer == (trust.Bearer{}) && c.username == "" { // these let in no token that an agent has
		c.noteClusters(cmd, api, namespace, system)
	}
	if bearer.Cluster != "" {
		c.noteCluster(cmd, api)
	}
	text, err := targets.WriteTrust(system, form, identities[0], identities[1:]...)
	if err != nil {
		return &command.Failure{
			Line: fmt.Sprintf("error: %s can't be configured to trust WorkloadIdentity %s/%s: %v", system, namespace, names[0], err),
			Hint: fmt.Sprintf("see the identity: kubectl get workloadidentity %s -n %s -o yaml", strings.Join(names, " "), namespace),
			Code: command.ExitRefused, Err: err,
		}
	}
	if c.output == "json" {
		return screen.JSON(c.Out, map[string]any{"system": system, "issuer": identities[0].Issuer, "subject": identities[0].Subject, "audiences": identities[0].Audiences, "commands": text})
	}
	_, err = io.WriteString(c.Out, text)
	return err
}

// bearer is whose tokens are to be trusted.
func (c *trustCommand) bearer(cmd *cobra.Command) (trust.Bearer, error) {
	bearer := trust.Bearer{Cluster: c.cluster}
	if problems := validation.IsDNS1123Label(c.cluster); c.cluster != "" && len(problems) > 0 {
		return bearer, command.Usage(cmd, fmt.Sprintf("--cluster %q is not the name of a WorkloadCluster: %s", c.cluster, problems[0]))
	}
	if c.account != "" {
		var found bool
		bearer.Namespace, bearer.Account, found = strings.Cut(c.account, "/")
		if problems := append(validation.IsDNS1123Label(bearer.Namespace), validation.IsDNS1123Subdomain(bearer.Account)...); !found || len(problems) > 0 {
			return bearer, command.Usage(cmd, fmt.Sprintf("--account %q is not a service account: give its namespace and its name, as NAMESPACE/NAME", c.account))
		}
	}
	if c.object != "" && c.account != "" {
		return bearer, command.Usage(cmd, "a token has one context: give --account or --context-object")
	}
	if c.username != "" && (bearer != (trust.Bearer{}) || c.object != "") {
		return bearer, command.Usage(cmd, "--username names the account: leave out --cluster, --account and --context-object. Accounts of other clusters have no username in tokens")
	}
	return bearer, nil
}

// noteClusters names the clusters whose agents may have tokens of the identities of a namespace, as far as the user may know of them.
func (c *trustCommand) noteClusters(cmd *cobra.Command, api *cluster.API, namespace, system string) {
	taken := "They are taken as well, unless --cluster NAME lets in one; whatever reads kubernetes.io must require gardener.cloud.seed beside it"
	if !targets.KnowsBearers(system) {
		taken = fmt.Sprintf("They are taken as well, as %s does not distinguish clusters: an identity of a namespace that no cluster has keeps them out", system)
	}
	var able []string
	err := cluster.Each(cmd.Context(), api, cluster.Listing{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: "workloadclusters"}, func(w *identityv1alpha1.WorkloadCluster) {
		if w.Spec.Identities.FromContexts || slices.Contains(w.Spec.Identities.Namespaces, namespace) {
			able = append(able, w.Name)
		}
	})
	if err != nil {
		fmt.Fprintf(c.ErrOut, "note: whether clusters that have joined may have tokens of it, too, is not known: %v. %s. A cluster admin sees them with: kubectl get workloadclusters\n", err, taken)
		return
	}
	if len(able) == 0 {
		return
	}
	fmt.Fprintf(c.ErrOut, "note: clusters that have joined may have tokens of it, too: %s. %s\n", wording.Some(able), taken)
}

// noteCluster notes that no cluster of the name has joined, which may be a slip: nothing would be taken.
func (c *trustCommand) noteCluster(cmd *cobra.Command, api *cluster.API) {
	var stored metav1.PartialObjectMetadata
	err := api.Get(cmd.Context(), &stored, cluster.Place{API: "/apis/" + identityv1alpha1.SchemeGroupVersion.String(), Resource: "workloadclusters", Name: c.cluster})
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintf(c.ErrOut, "note: there is no WorkloadCluster %s: until a cluster of this name has joined, no token is taken. See which there are: %s cluster list\n", c.cluster, cmd.Root().DisplayName())
	case err != nil:
		fmt.Fprintf(c.ErrOut, "note: whether there is a WorkloadCluster %s is not known: %v\n", c.cluster, err)
	}
}

// systemOf is the system of an identity's type.
func systemOf(cmd *cobra.Command, identity trust.Identity) (string, error) {
	systems := targets.TrustingType(identity.Type)
	if len(systems) == 1 {
		return systems[0], nil
	}
	return "", command.Usage(cmd, fmt.Sprintf("WorkloadIdentity %s/%s is of type %s, which may be trusted by several systems: choose one of %s before its name",
		identity.Namespace, identity.Name, identity.Type, strings.Join(systems, ", ")))
}

// Identity has the fields of a WorkloadIdentity that the other side needs.
func Identity(identity *v1alpha1.WorkloadIdentity) trust.Identity {
	trusted := trust.Identity{
		Namespace: identity.Namespace, Name: identity.Name, Type: identity.Spec.TargetSystem.Type,
		Issuer: identity.Status.Issuer, Subject: identity.Status.Sub, Audiences: identity.Spec.Audiences,
	}
	if config := identity.Spec.TargetSystem.ProviderConfig; config != nil {
		trusted.ProviderConfig = config.Raw
	}
	return trusted
}
