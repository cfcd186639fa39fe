package credential

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// whoami is "whoami": the user that the API server takes one for.
type whoami struct {
	*screen.Terminal
	connection *connection.Flags
	output     string
}

// NewWhoami is "whoami".
func NewWhoami(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	w := &whoami{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show the user and the groups that the API server takes you for",
		Long: `Show the user that the API server of the kubeconfig takes you for (SelfSubjectReview),
with the credential that kubectl would use, and print the user, its groups and what else
the server knows of it. No right is needed for it.`,
		Example: `  credence whoami
  credence whoami --kube-context production -o json`,
		Args:        command.NoArguments,
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return w.run(cmd) },
	}
	command.Output(cmd, &w.output, "How to print it: text, or json or yaml (the whole SelfSubjectReview)", "text", "json", "yaml")
	return cmd
}

func (w *whoami) run(cmd *cobra.Command) error {
	api, err := w.connection.Open(w.ErrOut)
	if err != nil {
		return err
	}
	defer w.WaitingFor("the API server " + api.Host)()
	review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"}}
	if err := api.Create(cmd.Context(), cluster.Place{API: "/apis/authentication.k8s.io/v1", Resource: "selfsubjectreviews"}, review, &review); err != nil {
		return whoamiFailure(api.Host, err)
	}
	if review.Status.UserInfo.Username == "" {
		return &command.Failure{Line: "error: the answer of the API server does not name your user", Code: command.ExitOutage}
	}
	if w.output != "text" {
		return screen.Object(w.Out, w.output, review)
	}
	return w.print(api.Host, review.Status.UserInfo)
}

func (w *whoami) print(host string, user authenticationv1.UserInfo) error {
	var text strings.Builder
	fmt.Fprintf(&text, "User:   %s\n", user.Username)
	if user.UID != "" {
		fmt.Fprintf(&text, "UID:    %s\n", user.UID)
	}
	for i, group := range user.Groups {
		label := "        "
		if i == 0 {
			label = "Groups: "
		}
		fmt.Fprintf(&text, "%s%s\n", label, group)
	}
	for i, name := range slices.Sorted(maps.Keys(user.Extra)) {
		label := "        "
		if i == 0 {
			label = "Extra:  "
		}
		fmt.Fprintf(&text, "%s%s: %s\n", label, name, strings.Join(user.Extra[name], ", "))
	}
	fmt.Fprintf(&text, "Server: %s\n", host)
	_, err := fmt.Fprint(w.Out, wording.Printable(text.String()))
	return err
}

func whoamiFailure(host string, err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return connection.Request{}.Failure("call "+host, err)
	}
	status := answer.Status()
	failed := &command.Failure{Line: connection.ServerLine(status), Code: command.ExitRefused, Err: err}
	switch {
	case status.Code == 401:
		failed.Hint = "the credentials of the kubeconfig are missing, wrong or expired: log in again, or choose others by --kube-context or --user"
	case status.Code == 404:
		failed.Hint = "the API server is older than Kubernetes 1.28, which has no SelfSubjectReview"
	case status.Code >= 500 || status.Code == 429:
		failed.Code = command.ExitOutage
	}
	return failed
}
