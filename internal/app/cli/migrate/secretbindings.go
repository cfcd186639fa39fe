package migrate

import (
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// gardener is the API of SecretBindings.
const gardener = "core.gardener.cloud/v1beta1"

// New is "migrate".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate COMMAND",
		Short: "Print the objects that take the place of those of other systems",
		Long:  `Print the objects that take the place of those of other systems, for you to apply.`,
	}
	cmd.AddCommand(newSecretBindings(terminal, kube))
	return command.Group(cmd)
}

// secretBindings is "migrate secretbindings".
type secretBindings struct {
	*screen.Terminal
	connection *connection.Flags

	all    bool
	output string
}

func newSecretBindings(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	s := &secretBindings{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "secretbindings",
		Short: "Print CredentialsBindings for the SecretBindings of Gardener",
		Long: `Print a CredentialsBinding for each SecretBinding of Gardener (` + gardener + `),
with the same name, labels, provider, Secret and quotas. Nothing is changed: apply what is
printed. To apply it, a user needs the right to get each Secret. Quotas are those of
Credence: make one with the name of each of Gardener's, before.

A SecretBinding is left out, with a note, if no CredentialsBinding has its meaning: it has
not exactly one provider.

Exit codes: 0 all are printed; 1 refused, or one is left out; 2 wrong usage; 3 a server
could not be reached.`,
		Example: `  credence migrate secretbindings -A > credentialsbindings.yaml
  kubectl apply -f credentialsbindings.yaml`,
		Args:        command.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "Print those of all namespaces")
	command.Output(cmd, &s.output, "What to print: yaml or json", "yaml", "json")
	return cmd
}

// secretBinding is what is read of a SecretBinding.
type secretBinding struct {
	metav1.ObjectMeta `json:"metadata"`
	Provider          v1alpha1.CredentialsProvider    `json:"provider"`
	SecretRef         v1alpha1.CredentialsReference   `json:"secretRef"`
	Quotas            []v1alpha1.CredentialsReference `json:"quotas"`
}

func (s *secretBindings) run(cmd *cobra.Command) error {
	namespace, _, err := s.connection.Scope(cmd, s.all)
	if err != nil {
		return err
	}
	api, err := s.connection.Open(s.ErrOut)
	if err != nil {
		return err
	}
	stop := s.WaitingFor("the API server " + api.Host)
	var found []secretBinding
	err = cluster.Each(cmd.Context(), api, cluster.Listing{API: "/apis/" + gardener, Namespace: namespace, Resource: "secretbindings"}, func(b *secretBinding) {
		found = append(found, *b)
	})
	stop()
	if apierrors.IsNotFound(err) {
		return &command.Failure{
			Line: "error: the cluster does not serve secretbindings of " + gardener,
			Hint: "choose the cluster with the API of Gardener, by --kube-context or --kubeconfig; one without it has no SecretBindings",
			Code: command.ExitRefused, Err: err,
		}
	}
	if err != nil {
		return connection.Request{Namespace: namespace, All: s.all, Program: cmd.Root().DisplayName()}.ObjectFailure("list SecretBindings", err)
	}
	var manifests []any
	var notes []string
	for _, binding := range found {
		if why := binding.leftOut(); why != "" {
			notes = append(notes, fmt.Sprintf("note: SecretBinding %s/%s is left out: %s", binding.Namespace, binding.Name, why))
			continue
		}
		manifests = append(manifests, binding.credentialsBinding())
	}
	if err := objects.Print(s.Out, s.output, manifests); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(s.ErrOut, wording.OneLine(note))
	}
	if len(notes) > 0 {
		return &command.Failure{Code: command.ExitRefused}
	}
	return nil
}

// leftOut is why no CredentialsBinding has the meaning of a SecretBinding, or "".
func (b secretBinding) leftOut() string {
	if len(validation.IsDNS1123Label(b.Provider.Type)) > 0 {
		return fmt.Sprintf("its provider.type %q does not name one provider", wording.Abbreviate(b.Provider.Type))
	}
	return ""
}

func (b secretBinding) credentialsBinding() v1alpha1.CredentialsBinding {
	return v1alpha1.CredentialsBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "CredentialsBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, Labels: b.Labels},
		Provider:   b.Provider, SecretRef: &b.SecretRef, Quotas: b.Quotas,
	}
}
