package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// create is "token create": the one command that prints a token.
type create struct {
	*screen.Terminal
	connection *connection.Flags

	duration time.Duration
	context  string
	output   string
}

func newCreate(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	c := &create{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token of a WorkloadIdentity and print it",
		Long: `Create a token of the WorkloadIdentity NAME and print it, alone and with a line
break, ready for $(...). The token is not stored anywhere.

With --context the token is requested on behalf of an object of the same
namespace, and names it in its claims: a service account, which you must be, or
be allowed to get and to impersonate, and which must be allowed to use the
WorkloadIdentity; or an object of a ContextKind, which you must be allowed to get
and to impersonate, and which must refer to the WorkloadIdentity.

Elsewhere, --context chooses the context of the kubeconfig, as with kubectl. Here
it does not, because a token has a context of its own: choose the one of the
kubeconfig by --kube-context, which works with every command.`,
		Example: `  # A token for an hour, in a variable
  TOKEN=$(credence token create my-app -n my-team)

  # A shorter one, on behalf of a service account
  credence token create my-app -n my-team --duration 15m --context serviceaccount/my-app

  # With another context of the kubeconfig
  credence token create my-app -n my-team --kube-context production`,
		Args: command.ExactlyOne("the NAME of a WorkloadIdentity"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },

		ValidArgsFunction: kube.CompleteArgument((*cluster.API).IdentityNames),
	}
	c.addFlags(cmd, kube)
	command.Output(cmd, &c.output, "What to print: token, json or yaml (the whole TokenRequest, with the token)", "token", "json", "yaml")
	return cmd
}

// addFlags adds those that choose the token.
func (c *create) addFlags(cmd *cobra.Command, kube *connection.Flags) {
	cmd.Flags().DurationVar(&c.duration, "duration", 0, "How long the token is to be valid, such as 30m or 12h; default: the server's, 1h")
	cmd.Annotations = map[string]string{connection.NeedsCluster: "yes"}
	cmd.Flags().Var((*onceValue)(&c.context), "context", "The object on whose behalf the token is used, KIND/NAME: serviceaccount/NAME, or an object of a ContextKind. Also --context-object")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "context-object" {
			name = "context"
		}
		return pflag.NormalizedName(name)
	})
	command.CompleteFlag(cmd, "context", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		found, directive := kube.CompleteNames(cmd.Context(), func(api *cluster.API, ctx context.Context, namespace string) ([]string, error) {
			return contexts(ctx, api, namespace, begun)
		}, "")
		if slices.ContainsFunc(found, func(word string) bool { return strings.HasSuffix(word, "/") }) {
			directive |= cobra.ShellCompDirectiveNoSpace // a name follows
		}
		return found, directive
	})
}

// contexts are the service accounts of a namespace, and the kinds of other objects; or the objects of a kind that begun has.
func contexts(ctx context.Context, api *cluster.API, namespace, begun string) (found []string, err error) {
	const account = "serviceaccount"
	add := func(kind string, names []string) {
		for _, name := range names {
			found = append(found, kind+"/"+name)
		}
	}
	kind, _, chosen := strings.Cut(begun, "/")
	if chosen && kind != account {
		names, err := api.ContextObjectNames(ctx, namespace, kind)
		add(kind, names)
		return found, err
	}
	names, err := api.ServiceAccountNames(ctx, namespace)
	add(account, names)
	if err != nil || chosen {
		return found, err
	}
	kinds, _ := api.ContextKindNames(ctx, namespace) // a user who may not list them has the accounts
	for _, kind := range kinds {
		add(kind, []string{""})
	}
	return found, nil
}

func (c *create) run(cmd *cobra.Command, name string) error {
	answer, err := c.token(cmd, name)
	if err != nil {
		return err
	}
	return c.print(answer)
}

// token returns an answer that holds one.
func (c *create) token(cmd *cobra.Command, name string) (*v1alpha1.TokenRequest, error) {
	request, err := c.request(cmd, name)
	if err != nil {
		return nil, err
	}
	if request.Namespace, err = c.connection.Namespace(); err != nil {
		return nil, err
	}
	api, err := c.connection.Open(c.ErrOut)
	if err != nil {
		return nil, err
	}
	defer c.WaitingFor("the API server " + api.Host)()
	ctx := cmd.Context()
	spec, err := c.spec(ctx, cmd, api, request)
	if err != nil {
		return nil, err
	}
	answer, err := api.CreateToken(ctx, request.Namespace, name, spec)
	if err != nil {
		return nil, request.Failure(fmt.Sprintf("create a token of WorkloadIdentity %s/%s", request.Namespace, name), err)
	}
	if answer.Status.Token == "" {
		return nil, &command.Failure{
			Line: fmt.Sprintf("error: create a token of WorkloadIdentity %s/%s: the server's answer holds no token", request.Namespace, name),
			Code: command.ExitOutage,
		}
	}
	return answer, nil
}

// onceValue is a string flag that cannot be given twice: of two contexts, one would be left out.
type onceValue string

func (v *onceValue) String() string { return string(*v) }

func (*onceValue) Type() string { return "string" }

func (v *onceValue) Set(value string) error {
	if *v != "" {
		return fmt.Errorf("a token has one context, and %q was given already (--context and --context-object are the same flag)", string(*v))
	}
	*v = onceValue(value)
	return nil
}

// request checks the command line, before the first request to the cluster.
func (c *create) request(cmd *cobra.Command, name string) (connection.Request, error) {
	request := connection.Request{Name: name, Program: cmd.Root().DisplayName()}
	if err := cluster.CheckName(name); err != nil {
		return request, command.Usage(cmd, err.Error())
	}
	if cmd.Flags().Changed("duration") && c.duration <= 0 {
		return request, command.Usage(cmd, fmt.Sprintf("--duration is %s, it must be longer than 0", c.duration))
	}
	if !cmd.Flags().Changed("context") {
		return request, nil
	}
	var err error
	if request.Context, err = connection.ParseObject(c.context); err != nil {
		return request, noContext(cmd, err)
	}
	return request, nil
}

func noContext(cmd *cobra.Command, err error) error {
	failed := command.Usage(cmd, "--context: "+err.Error())
	failed.Hint = "here, --context is the object on whose behalf the token is used; the context of the kubeconfig is chosen by --kube-context"
	return failed
}

func (c *create) spec(ctx context.Context, cmd *cobra.Command, api *cluster.API, request connection.Request) (v1alpha1.TokenRequestSpec, error) {
	var spec v1alpha1.TokenRequestSpec
	if cmd.Flags().Changed("duration") {
		spec.Duration = &metav1.Duration{Duration: c.duration}
	}
	if request.Context == nil {
		return spec, nil
	}
	var err error
	switch spec.ContextObject, err = request.Context.Read(ctx, api, request.Namespace); {
	case errors.Is(err, cluster.ErrNoContextKind):
		return spec, noContext(cmd, err)
	case err != nil:
		return spec, request.Failure(fmt.Sprintf("look up %s of namespace %s", c.context, request.Namespace), err)
	}
	return spec, nil
}

func (c *create) print(answer *v1alpha1.TokenRequest) error {
	switch c.output {
	case "json":
		return screen.JSON(c.Out, answer)
	case "yaml":
		text, err := yaml.Marshal(answer)
		if err != nil {
			return fmt.Errorf("print the token request: %w", err)
		}
		_, err = c.Out.Write(text)
		return err
	default:
		_, err := fmt.Fprintln(c.Out, answer.Status.Token)
		return err
	}
}
