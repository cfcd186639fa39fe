package access

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// policy is "access policy": it prints the policy that requires use of an account for kinds of other operators.
type policy struct {
	*screen.Terminal

	templates []string
}

func newPolicy(terminal *screen.Terminal) *cobra.Command {
	p := &policy{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "policy --template GROUP/VERSION,RESOURCE=PATH...",
		Short: "Print the policy that requires the right for another kind that makes pods",
		Long: `Print a ValidatingAdmissionPolicy and its three bindings, for audit, warn and enforce,
that require users to have the right to use the service account in the pod template of a
custom resource. It is the policy credence-account-use-templates for another kind:
installing a new version of Credence is a reason to print it anew.

PATH is the field with the template, such as spec.template. GROUP is the group of the
kind, or the name of its CustomResourceDefinition. When it is there, bind ClusterRole
credence:controllers to the operator, which makes pods for them.`,
		Example: `  credence access policy --template argoproj.io/v1alpha1,rollouts=spec.template | kubectl apply -f -`,
		Args:    command.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	cmd.Flags().StringArrayVar(&p.templates, "template", nil, "A kind and the path of its pod template, as GROUP/VERSION,RESOURCE=PATH; may be repeated; required")
	return cmd
}

func (p *policy) run(cmd *cobra.Command) error {
	if len(p.templates) == 0 {
		return command.Usage(cmd, "--template is missing, such as argoproj.io/v1alpha1,rollouts=spec.template")
	}
	shipped, err := deploy.Manifests()
	if err != nil {
		return err
	}
	var documents []any
	for _, text := range p.templates {
		template, err := access.ParseTemplate(text)
		if err != nil {
			return command.Usage(cmd, "--template: "+err.Error())
		}
		made, err := template.Policy(shipped)
		if err != nil {
			return err
		}
		for _, object := range made {
			documents = append(documents, object.Object)
		}
	}
	return objects.Print(p.Out, "yaml", documents)
}
