package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/explain"
)

// question is "explain": it shows which identities a pod gets or is refused, by the rules of the webhook.
type question struct {
	*screen.Terminal
	connection *connection.Flags

	file, output, identityKubeconfig string
}

// New is "explain".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	e := &question{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "explain (KIND NAME | KIND/NAME | -f FILE)",
		Short: "Report which identities and accounts a pod gets, from where, or why it is refused",
		Long: `Report of a pod which identities its service account gives it, whether the account may
use them, which files and variables its containers get, and what would be refused,
with the reason and what to do. Of a Windows pod that names GMSACredentialSpecs, or
gets one by the profile of its account, it also shows which account each container
runs as (credence gmsa explain does so without a cluster, and without profiles). The
rules are those of the webhook, applied to the cluster as it is now; nothing is created.
A pod that exists is judged as it was submitted: what Credence has added to it is taken
off first.

KIND is pod, deployment, statefulset, daemonset, replicaset, job or cronjob, of
which the pod template is looked at; serviceaccount, for a pod that runs as it; or
workloadidentity, for a pod of each service account that lists it. With -f, the objects
in a file of YAML or JSON are, or in - standard input, before they are applied; other
kinds are passed over, and unknown fields are warned of.

Where you may create pods, a dry run creates such a pod on the API server without
keeping it, so that all of the cluster's rules decide, for you as the creator. Whether
a service account may use an identity is decided by the cluster, for which you need the
right to create subjectaccessreviews. With neither right the verdict is unknown.

An admitted pod waits for its tokens. If one can not come, the verdict is that
the pod does not start, with the reason: the agent lacks a right, the name of the
Secret is taken, or the newest warning of account, Secret and identity. A pod that
waits has the reason in a condition, which is printed too. Of one that has waited for
30 seconds without a report, the verdict is that no agent has looked at it.

Exit codes: 0 it would be admitted; 1 it would be refused, not start, or get nothing
of what its service account lists; 2 wrong usage; 3 the verdict is unknown, or a
server could not be reached.`,
		Example: `  credence explain pod my-pod -n my-team
  credence explain deploy/my-app -n my-team
  credence explain -f my-app.yaml -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("filename") && len(args) > 0:
				return command.Usage(cmd, "-f names the objects: give no other arguments")
			case cmd.Flags().Changed("filename"):
				return nil
			}
			_, _, err := kindAndName(cmd, args)
			return err
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.AddCommand(newContext(terminal, kube))
	cmd.Flags().StringVarP(&e.file, "filename", "f", "", "A file with the objects, or - for standard input")
	cmd.Flags().StringVar(&e.identityKubeconfig, "identity-kubeconfig", "", connection.IdentityKubeconfigHelp)
	command.Output(cmd, &e.output, "What to print: text, json or yaml", "text", "json", "yaml")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return explain.KindNames(false), cobra.ShellCompDirectiveNoFileComp
		}
		kind, known := explain.KindOf(args[0])
		if !known || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kube.CompleteNames(cmd.Context(), func(api *cluster.API, ctx context.Context, namespace string) ([]string, error) {
			return api.Names(ctx, cluster.Listing{API: kind.API, Namespace: namespace, Resource: kind.Resource()})
		}, "")
	}
	return cmd
}

// kindAndName reads KIND NAME, or KIND/NAME.
func kindAndName(cmd *cobra.Command, args []string) (explain.Kind, string, error) {
	word, name, err := connection.KindAndName(cmd, args, "KIND NAME, KIND/NAME or -f FILE")
	if err != nil {
		return explain.Kind{}, "", err
	}
	kind, known := explain.KindOf(word)
	if !known {
		return kind, "", command.Usage(cmd, fmt.Sprintf("%q is not a kind that has pods: those are %s", word, strings.Join(explain.KindNames(false), ", ")))
	}
	return kind, name, nil
}

func (e *question) run(cmd *cobra.Command, args []string) error {
	home, err := e.connection.Home(cmd)
	if err != nil {
		return err
	}
	both, err := e.connection.OpenBoth(e.ErrOut, e.identityKubeconfig)
	if err != nil {
		return err
	}
	request := connection.Request{Namespace: home, Program: cmd.Root().DisplayName()}
	defer e.WaitingFor("the API server " + both.Workload.Host)()
	var subjects []explain.Subject
	if cmd.Flags().Changed("filename") {
		if subjects, err = e.subjectsOfFile(cmd, home); err != nil {
			return err
		}
	} else {
		kind, name, err := kindAndName(cmd, args)
		if err != nil {
			return err
		}
		if subjects, err = subjectsOf(cmd.Context(), both, kind, home, name); err != nil {
			return request.ObjectFailure(fmt.Sprintf("read %s %s/%s", kind.Name, home, name), err)
		}
		if len(subjects) == 0 {
			return &command.Failure{
				Line: fmt.Sprintf("error: no service account of namespace %s lists workload identity %q, so that no pod gets it", home, name),
				Hint: fmt.Sprintf("a user who may update service accounts there runs: kubectl annotate serviceaccount NAME -n %s --overwrite %s=%s", home, v1alpha1.AnnotationAccountIdentities, name),
				Code: command.ExitRefused,
			}
		}
	}
	var explanations []*explain.Pod
	accounts := explain.NewFacts(both.Workload)
	for _, subject := range subjects {
		explanation, err := explain.Identities(cmd.Context(), both, subject, e.Now())
		if err != nil {
			return request.ObjectFailure("look up what concerns "+subject.String(), err)
		}
		if subject = subject.FilledIn(explanation); subject.NamesSpecs() {
			if explanation.GMSA, err = explain.WindowsAccounts(cmd.Context(), accounts, subject); err != nil {
				return fmt.Errorf("explain %s: %w", subject, err)
			}
		}
		explanations = append(explanations, explanation)
	}
	if err := Print(e.Out, e.output, explanations, writePod); err != nil {
		return err
	}
	return exitOf(explanations)
}

// subjectsOf reads an object, and returns its pods: of an identity, a pod of each service account that lists it.
func subjectsOf(ctx context.Context, both cluster.Both, kind explain.Kind, namespace, name string) ([]explain.Subject, error) {
	if kind.Name == explain.KindIdentity {
		if _, err := both.Identity.Identity(ctx, namespace, name); err != nil {
			return nil, err
		}
		names, err := explain.AccountsWith(ctx, both.Workload, namespace, name)
		var subjects []explain.Subject
		for _, account := range names {
			subjects = append(subjects, explain.SubjectOfAccount(namespace, account))
		}
		return subjects, err
	}
	var object json.RawMessage
	if err := both.Workload.Get(ctx, &object, cluster.Place{API: kind.API, Namespace: namespace, Resource: kind.Resource(), Name: name}); err != nil {
		return nil, err
	}
	if kind.Name == explain.KindServiceAccount {
		return []explain.Subject{explain.SubjectOfAccount(namespace, name)}, nil
	}
	subject, err := explain.SubjectOf(object, kind.Name, namespace)
	if err != nil {
		return nil, err
	}
	return []explain.Subject{*subject}, nil
}

// exitOf is the exit code of verdicts: a pod that gets nothing, or does not start, counts more than one that nothing is known of.
func exitOf(explanations []*explain.Pod) error {
	code := 0
	for _, x := range explanations {
		switch {
		case x.Verdict == explain.Refused, x.Verdict == explain.Unserved, x.Verdict == explain.Blocked, x.Verdict == explain.Waits, x.GMSA != nil && x.GMSA.Verdict == explain.Refused:
			return &command.Failure{Code: command.ExitRefused}
		case x.Verdict == explain.Unknown:
			code = command.ExitOutage
		}
	}
	if code == 0 {
		return nil
	}
	return &command.Failure{Code: code}
}

func (e *question) subjectsOfFile(cmd *cobra.Command, home string) ([]explain.Subject, error) {
	text, err := command.ReadFile(e.In, e.file)
	if err != nil {
		return nil, command.Usage(cmd, "-f: "+err.Error())
	}
	subjects, err := explain.SubjectsOfText(text, home)
	if err != nil {
		return nil, command.Usage(cmd, fmt.Sprintf("-f: %s: %v", e.file, err))
	}
	if len(subjects) == 0 {
		return nil, command.Usage(cmd, fmt.Sprintf("-f: %s holds no object of a kind that has pods: %s", e.file, strings.Join(explain.KindNames(true), ", ")))
	}
	return subjects, nil
}
