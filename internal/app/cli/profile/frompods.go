package profile

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/profile/fit"
	"github.com/credence-id/credence/internal/tokensecret"
)

// fromPods is "profile from-pods".
type fromPods struct {
	*screen.Terminal
	connection *connection.Flags
}

func newFromPods(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	f := &fromPods{Terminal: terminal, connection: kube}
	return &cobra.Command{
		Use:   "from-pods ACCOUNT",
		Short: "Print a profile that all running pods of a service account meet",
		Long: `Print a ServiceAccountProfile for a service account, as strict as the strictest that all
of its running pods meet: the security context that they have in common, the Secrets
that they name, and no token where no pod has one. A field on which pods differ is left
open. Nothing is written: look at it, and apply it.

Workload identities of the account's annotation stay there, since a profile and the
annotation must not both name some. Without the annotation the profile has those of the
account's profile, if there is one, and else none.`,
		Example: `  credence profile from-pods cart -n shop > cart-profile.yaml
  credence profile lint -f cart-profile.yaml`,
		Args:              command.ExactlyOne("the name of a service account"),
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
		RunE:              f.run,
		ValidArgsFunction: kube.CompleteArgument((*cluster.API).ServiceAccountNames),
	}
}

func (f *fromPods) run(cmd *cobra.Command, args []string) error {
	namespace, err := f.connection.Home(cmd)
	if err != nil {
		return err
	}
	api, err := f.connection.Open(f.ErrOut)
	if err != nil {
		return err
	}
	defer f.WaitingFor("the API server " + api.Host)()
	request := connection.Request{Namespace: namespace, Program: cmd.Root().DisplayName()}
	var account corev1.ServiceAccount
	if err := api.Get(cmd.Context(), &account, cluster.Place{Namespace: namespace, Resource: "serviceaccounts", Name: args[0]}); err != nil {
		return request.ObjectFailure(fmt.Sprintf("read service account %s/%s", namespace, args[0]), err)
	}
	annotation, annotated := account.Annotations[v1alpha1.AnnotationAccountIdentities]
	var stored accounts.ServiceAccountProfile
	err = api.Get(cmd.Context(), &stored, cluster.Place{API: "/apis/" + accounts.SchemeGroupVersion.String(), Namespace: namespace, Resource: "serviceaccountprofiles", Name: account.Name})
	if err != nil && !apierrors.IsNotFound(err) {
		return request.ObjectFailure(fmt.Sprintf("read the profile of service account %s/%s", namespace, account.Name), err)
	}
	identities := stored.Spec.WorkloadIdentities
	if annotated {
		identities, _ = tokensecret.ParseIdentities(annotation)
	}
	var tokens []string
	for _, identity := range identities {
		tokens = append(tokens, tokensecret.NameFor(account.Name, identity))
	}
	var running []profile.Pod
	err = cluster.Each(cmd.Context(), api, cluster.Listing{Namespace: namespace, Resource: "pods", Fields: "spec.serviceAccountName=" + account.Name}, func(pod *corev1.Pod) {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil {
			running = append(running, profile.Pod{Pod: pod, OS: pods.OS(pod, nil), Tokens: tokens})
		}
	})
	if err != nil {
		return request.ObjectFailure("list the pods of namespace "+namespace, err)
	}
	if len(running) == 0 {
		return &command.Failure{
			Line: fmt.Sprintf("error: no pod of service account %s/%s runs", namespace, account.Name), Code: command.ExitRefused,
			Hint: "a profile is made from pods: start the account's workload, or choose another account",
		}
	}
	made := accounts.ServiceAccountProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: accounts.SchemeGroupVersion.String(), Kind: "ServiceAccountProfile"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account.Name}, Spec: fit.Spec(running),
	}
	if annotated {
		fmt.Fprintf(f.ErrOut, "workload identities stay in the annotation of the account: %s\n", strings.TrimSpace(annotation))
	} else {
		made.Spec.WorkloadIdentities = append([]string{}, identities...)
	}
	text, err := manifest(made)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f.Out, "# The strictest profile that the %d running pods of this account meet.\n%s", len(running), text)
	return err
}
