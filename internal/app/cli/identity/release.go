package identity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		Short: "End the deletion of a workload identity or binding",
		Long:  `End the deletion of a workload identity, or CredentialsBinding, that is still in use.`,
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
		Short: "End the deletion of an identity or binding that is in use",
		Long: `End the deletion of a workload identity to which CredentialsBindings still refer, or of a
CredentialsBinding that consumers of other namespaces still use. Such an object stays
until the last of them is gone, so that what was made with its tokens can be cleaned up
with its tokens. Without --force they are named, and nothing is changed. With it the
object is gone at once, and they get no more tokens. Just after the deletion it waits up
to ten seconds for what the server does not show yet.

Exit codes: 0 the object is gone, or nothing keeps it; 1 refused, or without --force it
is in use; 2 wrong usage; 3 a server could not be reached.`,
		Example: `  credence identity release banana-testing -n garden-local
  credence identity release banana-testing -n garden-local --force
  credence identity release credentialsbinding/banana -n garden-local --force`,
		Args:        command.ExactlyOne("the name of a WorkloadIdentity, or credentialsbinding/NAME"),
		RunE:        func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVar(&r.force, "force", false, "Release the object although it is in use")
	return cmd
}

func (r *release) run(cmd *cobra.Command, word string) error {
	namespace, err := r.connection.Home(cmd)
	if err != nil {
		return err
	}
	of, name := heldBy(word)
	if err := cluster.CheckName(name); err != nil {
		return command.Usage(cmd, err.Error())
	}
	api, err := r.connection.Open(r.ErrOut)
	if err != nil {
		return err
	}
	request := connection.Request{Namespace: namespace, Name: name, Program: cmd.Root().DisplayName()}
	defer r.WaitingFor("the deletion of " + of.kind + " " + namespace + "/" + name)()
	over, stop := r.After(patience)
	defer stop()
	for {
		again, err := r.try(cmd.Context(), api, request, of)
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

// held is a kind whose objects stay when they are deleted, while others use them.
type held struct {
	kind, resource, finalizer string
	// users are the objects that use one, and loss is what these lose.
	users, loss string
}

var (
	identities = held{"WorkloadIdentity", "workloadidentities", v1alpha1.FinalizerBindings, "CredentialsBindings refer to", "delete them or have them refer to other credentials"}
	bindings   = held{"CredentialsBinding", "credentialsbindings", v1alpha1.FinalizerConsumers, "consumers of other namespaces use", "have them name another binding, or delete them"}
)

// heldBy returns the kind and name that a word means: NAME or KIND/NAME.
func heldBy(word string) (held, string) {
	for _, prefix := range []string{"credentialsbinding/", "credentialsbindings/", "cb/"} {
		if name, ok := strings.CutPrefix(word, prefix); ok {
			return bindings, name
		}
	}
	return identities, word
}

// referred returns the message of the condition that names the users of an object; empty without one.
func referred(found *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, _ := each.(map[string]any); condition["type"] == v1alpha1.ConditionReferred {
			return fmt.Sprint(condition["message"])
		}
	}
	return ""
}

// try returns whether another try could have another end: a moment later the server shows the deletion, and what keeps the object.
func (r *release) try(ctx context.Context, api *cluster.API, request connection.Request, of held) (again bool, err error) {
	title := fmt.Sprintf("%s %s/%s", of.kind, request.Namespace, request.Name)
	at := cluster.Place{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Namespace: request.Namespace, Resource: of.resource, Name: request.Name}
	found := &unstructured.Unstructured{}
	if err := api.Get(ctx, found, at); err != nil {
		return false, request.Failure("read the "+of.kind, err)
	}
	finalizers := found.GetFinalizers()
	switch {
	case found.GetDeletionTimestamp() == nil:
		return true, &command.Failure{
			Line: fmt.Sprintf("error: %s is not being deleted", title),
			Hint: fmt.Sprintf("a user who may delete it does so first: kubectl delete %s %s -n %s", strings.ToLower(of.kind), request.Name, request.Namespace), Code: command.ExitRefused,
		}
	case !slices.Contains(finalizers, of.finalizer):
		return false, r.say("nothing keeps %s\n", title)
	case !r.force:
		why := wording.OneLine(referred(found))
		line := "error: " + why
		if !strings.HasPrefix(why, title) {
			line = fmt.Sprintf("error: %s %s: %s", of.users, title, cmp.Or(why, "it is not known yet which"))
		}
		return why == "", &command.Failure{
			Line: line,
			Hint: of.loss + "; with --force it is gone at once, and they get no more tokens", Code: command.ExitRefused,
		}
	}
	found.SetFinalizers(slices.DeleteFunc(finalizers, func(f string) bool { return f == of.finalizer }))
	if err := api.Update(ctx, at, found, nil); err != nil {
		return apierrors.IsConflict(err), request.Failure("release the "+of.kind, err)
	}
	return false, r.say("%s is released\n", title)
}

func (r *release) say(format string, values ...any) error {
	_, err := fmt.Fprintf(r.Out, format, values...)
	return err
}
