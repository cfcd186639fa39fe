package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

const (
	// patience bounds the wait for what the server does not show at once after a deletion.
	patience  = 10 * time.Second
	lookAgain = 500 * time.Millisecond
)

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
changed. With it the identity is gone at once, and its bindings get no more tokens. Just
after the deletion it waits up to ten seconds for what the server does not show yet.

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
	defer r.WaitingFor("the deletion of WorkloadIdentity " + namespace + "/" + name)()
	over, stop := r.After(patience)
	defer stop()
	for {
		again, err := r.try(cmd.Context(), api, request)
		if !again {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return err
		case <-over:
			return err
		case <-time.After(lookAgain):
		}
	}
}

// try returns whether another try could have another end: a moment later the server shows the deletion, and what keeps the identity.
func (r *release) try(ctx context.Context, api *cluster.API, request connection.Request) (again bool, err error) {
	namespace, name := request.Namespace, request.Name
	wi, err := api.Identity(ctx, namespace, name)
	switch {
	case err != nil:
		return false, request.Failure("read the identity", err)
	case wi.DeletionTimestamp == nil:
		return true, &command.Failure{
			Line: fmt.Sprintf("error: WorkloadIdentity %s/%s is not being deleted", namespace, name),
			Hint: fmt.Sprintf("a user who may delete it does so first: kubectl delete workloadidentity %s -n %s", name, namespace), Code: command.ExitRefused,
		}
	case !slices.Contains(wi.Finalizers, v1alpha1.FinalizerBindings):
		return false, r.say("no CredentialsBinding keeps WorkloadIdentity %s/%s\n", namespace, name)
	case !r.force:
		why, referred := "it is not known yet which", meta.FindStatusCondition(wi.Status.Conditions, v1alpha1.ConditionReferred)
		if referred != nil {
			why = referred.Message
		}
		return referred == nil, &command.Failure{
			Line: fmt.Sprintf("error: CredentialsBindings refer to WorkloadIdentity %s/%s: %s", namespace, name, wording.OneLine(why)),
			Hint: "delete them or have them refer to other credentials; with --force the identity is gone at once, and they get no more tokens", Code: command.ExitRefused,
		}
	}
	wi.Finalizers = slices.DeleteFunc(wi.Finalizers, func(f string) bool { return f == v1alpha1.FinalizerBindings })
	at := cluster.Place{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Namespace: namespace, Resource: "workloadidentities", Name: name}
	if err := api.Update(ctx, at, wi, nil); err != nil {
		return apierrors.IsConflict(err), request.Failure("release the identity", err)
	}
	return false, r.say("WorkloadIdentity %s/%s is released\n", namespace, name)
}

func (r *release) say(format string, values ...any) error {
	_, err := fmt.Fprintf(r.Out, format, values...)
	return err
}
