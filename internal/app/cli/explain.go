package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/gmsa"
)

// explain is "explain": it says what identities a pod gets, and what is refused, by the rules of the webhook.
type explain struct {
	*terminal
	connection *connection

	file, output, identityKubeconfig string
}

// explainedKinds are the kinds that have pods, with where the API has them.
func explainedKinds() map[string]string {
	return map[string]string{
		"pod": "/api/v1", "deployment": "/apis/apps/v1", "statefulset": "/apis/apps/v1", "daemonset": "/apis/apps/v1",
		"replicaset": "/apis/apps/v1", "job": "/apis/batch/v1", "cronjob": "/apis/batch/v1",
	}
}

func newExplainCommand(terminal *terminal, connection *connection) *cobra.Command {
	e := &explain{terminal: terminal, connection: connection}
	cmd := &cobra.Command{
		Use:   "explain (KIND NAME | -f FILE)",
		Short: "Say which identities and accounts a pod gets, from where, or why it is refused",
		Long: `Say of a pod which identities its service account gives it, whether the account may
use them, which files and variables its containers get, and what would be refused,
with the reason and what to do. Of a Windows pod that names GMSACredentialSpecs it
also says which account each container runs as (credence gmsa explain does so without
a cluster). The rules are those of the webhook, applied to the cluster as it is now;
nothing is created.

KIND is pod, deployment, statefulset, daemonset, replicaset, job or cronjob, of
which the pod template is looked at. With -f, the objects in a file of YAML or JSON
are, or in - standard input, before they are applied; other kinds are passed over.

Whether a service account may use an identity is asked of the cluster, for which you
need the right to create subjectaccessreviews. Without it that question stays open.

Exit codes: 0 it would be admitted; 1 it would be refused, or get nothing of what its
service account lists; 2 wrong usage; 3 a server could not be reached.`,
		Example: `  credence explain pod my-pod -n my-team
  credence explain deployment my-app -n my-team
  credence explain -f my-app.yaml -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("filename") && len(args) > 0:
				return usageFailure(cmd, "-f names the objects: give no other arguments")
			case cmd.Flags().Changed("filename"):
				return nil
			case len(args) != 2:
				return usageFailure(cmd, fmt.Sprintf("wanted are a KIND and a NAME, or -f FILE; there are %d arguments", len(args)))
			case explainedKinds()[strings.ToLower(args[0])] == "":
				return usageFailure(cmd, fmt.Sprintf("%q is no kind that has pods, those are %s", args[0], strings.Join(kindNames(), ", ")))
			}
			if err := checkName(args[1]); err != nil {
				return usageFailure(cmd, err.Error())
			}
			return nil
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
		Annotations: map[string]string{needsCluster: "yes"},
	}
	cmd.Flags().StringVarP(&e.file, "filename", "f", "", "A file with the objects, or - for standard input")
	cmd.Flags().StringVar(&e.identityKubeconfig, "identity-kubeconfig", "", identityKubeconfigHelp)
	cmd.Flags().StringVarP(&e.output, "output", "o", "text", "What to print: text or json")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return kindNames(), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func kindNames() []string {
	var names []string
	for name := range explainedKinds() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (e *explain) run(cmd *cobra.Command, args []string) error {
	if err := oneOf(cmd, "output", e.output, "text", "json"); err != nil {
		return err
	}
	home, err := e.connection.home(cmd)
	if err != nil {
		return err
	}
	both, err := e.connection.openBoth(e.errOut, e.identityKubeconfig)
	if err != nil {
		return err
	}
	request := tokenRequest{namespace: home, program: cmd.Root().DisplayName()}
	defer e.waitingFor("the API server " + both.workload.host)()
	var subjects []podSubject
	if cmd.Flags().Changed("filename") {
		if subjects, err = e.subjectsOfFile(cmd, home); err != nil {
			return err
		}
	} else {
		var object json.RawMessage
		kind := strings.ToLower(args[0])
		if err := both.workload.raw(cmd.Context(), &object, fmt.Sprintf("%s/namespaces/%s/%ss/%s", explainedKinds()[kind], home, kind, args[1])); err != nil {
			return request.objectFailure(fmt.Sprintf("read %s %s/%s", kind, home, args[1]), err)
		}
		subject, err := subjectOf(object, kind, home)
		if err != nil {
			return err
		}
		subjects = []podSubject{*subject}
	}
	var explanations []*podExplanation
	accounts := newGMSAFacts(both.workload)
	for _, subject := range subjects {
		explanation, err := explainPod(cmd.Context(), both, subject, e.now())
		if err != nil {
			return request.objectFailure("look up what concerns "+subject.String(), err)
		}
		if len(gmsa.References(subject.pod, false)) > 0 {
			if explanation.GMSA, err = explainGMSA(cmd.Context(), accounts, subject); err != nil {
				return fmt.Errorf("explain %s: %w", subject, err)
			}
		}
		explanations = append(explanations, explanation)
	}
	if err := printExplained(e.out, e.output, explanations); err != nil {
		return err
	}
	for _, explanation := range explanations {
		if explanation.Verdict == podRefused || explanation.Verdict == podUnserved || explanation.GMSA != nil && explanation.GMSA.Verdict == podRefused {
			return &failure{code: exitRefused}
		}
	}
	return nil
}

// home is the namespace of what names none; one that nothing can have is wrong usage.
func (c *connection) home(cmd *cobra.Command) (string, error) {
	home, err := c.namespace()
	if err != nil {
		return "", err
	}
	if err := checkName(home); err != nil {
		return "", usageFailure(cmd, "--namespace: "+err.Error())
	}
	return home, nil
}

// objectFailure words an error on an object that is no identity.
func (r tokenRequest) objectFailure(doing string, err error) error {
	failed, ok := errors.AsType[*failure](r.failure(doing, err))
	if ok && strings.Contains(failed.hint, "kubectl get workloadidentities") {
		failed.hint = ""
	}
	return failed
}

// maxManifest bounds what is read of a file.
const maxManifest = 8 << 20

func (e *explain) subjectsOfFile(cmd *cobra.Command, home string) ([]podSubject, error) {
	text, err := e.readManifest(e.file)
	if err != nil {
		return nil, usageFailure(cmd, "-f: "+err.Error())
	}
	var subjects []podSubject
	documents := utilyaml.NewYAMLReader(newBufferedReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, usageFailure(cmd, fmt.Sprintf("-f: %s: %v", e.file, err))
		}
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, usageFailure(cmd, fmt.Sprintf("-f: %s: %v", e.file, err))
		}
		some, err := subjectsOf(object, home)
		if err != nil {
			return nil, usageFailure(cmd, fmt.Sprintf("-f: %s: %v", e.file, err))
		}
		subjects = append(subjects, some...)
	}
	if len(subjects) == 0 {
		return nil, usageFailure(cmd, fmt.Sprintf("-f: %s holds no object of a kind that has pods: %s", e.file, strings.Join(kindNames(), ", ")))
	}
	return subjects, nil
}

func (e *explain) readManifest(name string) ([]byte, error) {
	from := e.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxManifest)
	}
	return text, err
}
