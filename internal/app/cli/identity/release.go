package identity

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// New is "identity".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "identity COMMAND",
		Short: "End the deletion of a workload identity",
		Long:  `End the deletion of a workload identity to which CredentialsBindings still refer.`,
	}
	cmd.AddCommand(newRelease(terminal, kube))
	return command.Group(cmd)
}

// release is "identity release".
type release struct {
	*screen.Terminal
	connection *connection.Flags

	force bool
}

func newRelease(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	r := &release{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "End the deletion of an identity to which CredentialsBindings refer",
		Long: `End the deletion of a workload identity to which CredentialsBindings still refer. Such an
identity stays until the last of them is gone, so that what was made with its tokens can
be cleaned up with its tokens. Without --force the bindings are named, and nothing is
changed. With it the identity is gone at once, and its bindings get no more tokens.

Exit codes: 0 the identity is gone, or no binding keeps it; 1 refused, or without --force
a binding refers to it; 2 wrong usage; 3 a server could not be reached.`,
		Example: `  credence identity release banana-testing -n garden-local
  credence identity release banana-testing -n garden-local --force`,
		Args:        command.ExactlyOne("the name of a WorkloadIdentity"),
		RunE:        func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVar(&r.force, "force", false, "Release the identity although CredentialsBindings refer to it")
	return cmd
}

func (r *release) run(cmd *cobra.Command, name string) error {
	namespace, err := r.connection.Home(cmd)
	if err != nil {
		return err
	}
	if err := cluster.CheckName(name); err != nil {
		return command.Usage(cmd, err.Error())
	}
	api, err := r.connection.Open(r.ErrOut)
	if err != nil {
		return err
	}
	request := connection.Request{Namespace: namespace, Name: name, Program: cmd.Root().DisplayName()}
	stop := r.WaitingFor("the API server " + api.Host)
	defer stop()
	wi, err := api.Identity(cmd.Context(), namespace, name)
	switch {
	case err != nil:
		return request.Failure("read the identity", err)
	case wi.DeletionTimestamp == nil:
		return &command.Failure{
			Line: fmt.Sprintf("error: WorkloadIdentity %s/%s is not being deleted", namespace, name),
			Hint: fmt.Sprintf("a user who may delete it does so first: kubectl delete workloadidentity %s -n %s", name, namespace), Code: command.ExitRefused,
		}
	case !slices.Contains(wi.Finalizers, v1alpha1.FinalizerBindings):
		return r.say("no CredentialsBinding keeps WorkloadIdentity %s/%s\n", namespace, name)
	case !r.force:
		why := "it is not known yet which"
		if referred := meta.FindStatusCondition(wi.Status.Conditions, v1alpha1.ConditionReferred); referred != nil {
			why = referred.Message
		}
		return &command.Failure{
			Line: fmt.Sprintf("error: CredentialsBindings refer to WorkloadIdentity %s/%s: %s", namespace, name, wording.OneLine(why)),
			Hint: "delete them or have them refer to other credentials; with --force the identity is gone at once, and they get no more tokens", Code: command.ExitRefused,
		}
	}
	wi.Finalizers = slices.DeleteFunc(wi.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerBindings })
	at := cluster.Place{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Namespace: namespace, Resource: "workloadidentities", Name: name}
	if err := api.Update(cmd.Context(), at, wi, nil); err != nil {
		return request.Failure("release the identity", err)
	}
	return r.say("WorkloadIdentity %s/%s is released\n", namespace, name)
}

func (r *release) say(format string, values ...any) error {
	_, err := fmt.Fprintf(r.Out, format, values...)
	return err
}
