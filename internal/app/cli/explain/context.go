package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/wording"
)

// contextQuestion is "explain context": it shows what an object of a ContextKind uses, and what is delivered for it, by the API server.
type contextQuestion struct {
	*screen.Terminal
	connection *connection.Flags

	output string
}

// kindAndNameHelp is what the command wants.
const kindAndNameHelp = "KIND NAME or KIND/NAME"

func newContext(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	e := &contextQuestion{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "context (KIND NAME | KIND/NAME)",
		Short: "Report which identities an object of a ContextKind uses, where its tokens go, and what is refused",
		Long: `Report of an object of a ContextKind, such as a Shoot of Gardener or a Cluster of
Cluster API, which identities and CredentialsBindings it uses, on which WorkloadClusters
it is, which Secrets are delivered there, which claims the tokens have, and what is
refused and why: for the agent of each cluster, and for you. The API server of the
identity cluster answers, by the checks of a request for a token; no token is made.
Quotas that the bindings list are shown with their limits, and what is used of them.

KIND is what kubectl takes: a resource, a kind or a short name, with its group where
it needs one. You need the right to get the object. Bindings and identities
that you may not get are left out, and so are related objects that the token claims, such
as the Project of a Shoot. The verdict is then unknown, with the right that is missing.

Exit codes: 0 everything is issued and delivered, or the object uses nothing; 1 something
is refused; 2 wrong usage; 3 the verdict is unknown, or a server could not be reached.`,
		Example: `  credence explain context shoot/foo -n garden-local
  credence explain context backupbuckets.core.gardener.cloud my-bucket -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, _, err := connection.KindAndName(cmd, args, kindAndNameHelp)
			return err
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	command.Output(cmd, &e.output, "What to print: text, json or yaml", "text", "json", "yaml")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return kube.CompleteNames(cmd.Context(), (*cluster.API).ContextKindNames, "")
		case 1:
			return kube.CompleteNames(cmd.Context(), func(api *cluster.API, ctx context.Context, namespace string) ([]string, error) {
				return api.ContextObjectNames(ctx, namespace, args[0])
			}, "")
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func (e *contextQuestion) run(cmd *cobra.Command, args []string) error {
	home, err := e.connection.Home(cmd)
	if err != nil {
		return err
	}
	word, name, err := connection.KindAndName(cmd, args, kindAndNameHelp)
	if err != nil {
		return err
	}
	api, err := e.connection.Open(e.ErrOut)
	if err != nil {
		return err
	}
	defer e.WaitingFor("the API server " + api.Host)()
	request := connection.Request{Namespace: home, Program: cmd.Root().DisplayName()}
	kind, err := api.Kind(word)
	if errors.Is(err, cluster.ErrNoKind) {
		return command.Usage(cmd, fmt.Sprintf("the API server has no kind %q: kubectl api-resources shows those that there are", word))
	} else if err != nil {
		return request.ObjectFailure("look up the kind "+word, err)
	}
	var object metav1.PartialObjectMetadata
	if err := api.Get(cmd.Context(), &object, kind.Place(home, name)); err != nil {
		return request.ObjectFailure(fmt.Sprintf("read %s %s", kind.Title(), name), err)
	}
	x, err := explain.ContextObject(cmd.Context(), api, kind, object.ObjectMeta)
	if err != nil {
		return contextFailure(request, kind, err)
	}
	if e.output == "text" {
		var text strings.Builder
		writeContext(&text, x)
		_, err = io.WriteString(e.Out, wording.Printable(text.String()))
	} else {
		err = screen.Object(e.Out, e.output, x)
	}
	if err != nil {
		return err
	}
	switch x.Verdict {
	case explain.Refused:
		return &command.Failure{Code: command.ExitRefused}
	case explain.Unknown:
		return &command.Failure{Code: command.ExitOutage}
	}
	return nil
}

// contextFailure words an error of a review. Of a kind that no ContextKind opens it names who may change that.
func contextFailure(request connection.Request, kind cluster.Kind, err error) error {
	failed, known := errors.AsType[*command.Failure](request.ObjectFailure("review the object", err))
	if !known {
		return err
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusUnprocessableEntity {
		supported := ""
		if details := status.Status().Details; details != nil && len(details.Causes) == 1 {
			if _, listed, found := strings.Cut(details.Causes[0].Message, "supported values: "); found {
				supported = "; those that do are of " + listed
			}
		}
		failed.Line = fmt.Sprintf("error: no ContextKind makes %s contexts of tokens, so no tokens are issued on their behalf%s", kind.Title(), supported)
		failed.Hint = fmt.Sprintf("a user with the verb create on contextkinds may write one, who also needs in all namespaces get, list and watch on %s, and create on workloadidentities/token; of pods and their workloads: %s explain KIND/NAME",
			kind.Title(), request.Program)
	}
	return failed
}

func writeContext(text *strings.Builder, x *explain.Context) {
	object := x.ContextObject
	fmt.Fprintf(text, "%s %s: %s\n", object.Kind, wording.OneLine(strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")), x.Verdict)
	line := func(what, value string) {
		if value != "" {
			fmt.Fprintf(text, "  %-11s %s\n", what, wording.OneLine(value))
		}
	}
	line("why", x.Reason)
	line("kind", "ContextKind "+x.ContextKind)
	where := "none: no agent is given tokens on its behalf"
	switch {
	case x.ClustersProblem != "":
		where = "not known: " + x.ClustersProblem
	case len(x.Clusters) > 0:
		where = strings.Join(x.Clusters, ", ")
	}
	line("clusters", where)
	line("problem", x.Problem)
	line("renewal", x.Renewal)
	for _, unknown := range x.Unknown {
		line("unknown", unknown)
	}
	if x.LastFailure != nil {
		line("event", warningLine(x.LastFailure))
	}
	for _, note := range x.Notes {
		line("note", note)
	}
	for _, reference := range x.References {
		fmt.Fprintf(text, "\n  %s\n", wording.OneLine(explain.TitleOfReference(reference.WorkloadIdentity, reference.CredentialsBinding)))
		line("  refused", reference.Problem)
		line("  unknown", reference.Unknown)
		for _, token := range reference.Tokens {
			caller := "cluster " + token.Cluster
			if token.Cluster == "" {
				caller = "you"
			}
			switch {
			case token.Unknown != "":
				line("  unknown", caller+": "+token.Unknown)
			case token.Refused != "":
				line("  refused", fmt.Sprintf("%s (%d): %s", caller, token.Code, token.Refused))
			case reference.Secret != nil:
				line("  data", fmt.Sprintf("%s: of Secret %s/%s, in place of a token", caller, reference.Secret.Namespace, reference.Secret.Name))
			default:
				line("  token", caller+": "+string(token.Claims.Raw))
			}
		}
	}
	if len(x.Quotas) > 0 {
		text.WriteString("\n  quotas\n")
	}
	for _, quota := range x.Quotas {
		line("  quota", fmt.Sprintf("%s/%s by CredentialsBinding %s/%s: %s", quota.Namespace, quota.Name, quota.CredentialsBinding.Namespace, quota.CredentialsBinding.Name, limits(quota)))
		for _, condition := range quota.Status.Conditions {
			if condition.Type == authenticationv1alpha1.ConditionExceeded == (condition.Status == metav1.ConditionTrue) {
				line("    problem", condition.Message)
			}
		}
	}
	if len(x.Deliveries) > 0 {
		text.WriteString("\n  deliveries\n")
	}
	for _, delivery := range x.Deliveries {
		secret := "a Secret that is not known"
		if delivery.Secret.Name != "" {
			secret = fmt.Sprintf("Secret %s/%s", delivery.Secret.Namespace, delivery.Secret.Name)
		}
		what := fmt.Sprintf("%s in cluster %s: %s", secret, delivery.Cluster, explain.TitleOfReference(delivery.WorkloadIdentity, delivery.CredentialsBinding))
		line("  secret", what)
		line("    problem", delivery.Problem)
		line("    unknown", delivery.Unknown)
	}
}

// limits are what a Quota allows, each with how much is used.
func limits(quota explain.Quota) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Metrics)) {
		limit, used := quota.Spec.Metrics[name], "?"
		if amount, known := quota.Status.Used[name]; known {
			used = amount.String()
		}
		texts = append(texts, fmt.Sprintf("%s %s of %s", name, used, limit.String()))
	}
	if quota.Spec.Scope.Kind == "Project" && len(texts) > 0 {
		texts[len(texts)-1] += " (in each namespace; shown is the one that uses most)"
	}
	if days := quota.Spec.ClusterLifetimeDays; days != nil {
		texts = append(texts, "a lifetime of "+wording.Plural(int(*days), "day", "days"))
	}
	return strings.Join(texts, ", ")
}
