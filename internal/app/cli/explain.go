package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/gmsa"
)

// explain is "explain": it shows which identities a pod gets or is refused, by the rules of the webhook.
type explain struct {
	*terminal
	connection *connection

	file, output, identityKubeconfig string
}

// explainedKind is a kind that has pods.
type explainedKind struct {
	name, api string
	short     []string
}

// explainedKinds are sorted by name.
func explainedKinds() []explainedKind {
	return []explainedKind{
		{"cronjob", "/apis/batch/v1", []string{"cj"}},
		{"daemonset", "/apis/apps/v1", []string{"ds"}},
		{"deployment", "/apis/apps/v1", []string{"deploy"}},
		{"job", "/apis/batch/v1", nil},
		{"pod", "/api/v1", []string{"po"}},
		{"replicaset", "/apis/apps/v1", []string{"rs"}},
		{"statefulset", "/apis/apps/v1", []string{"sts"}},
	}
}

// kindOf finds a kind by what kubectl takes for it: pod, pods, po, Pod, pods.v1. and deployments.apps.
func kindOf(word string) (explainedKind, bool) {
	word, group, _ := strings.Cut(strings.ToLower(word), ".")
	for _, kind := range explainedKinds() {
		if word != kind.name && word != kind.name+"s" && !slices.Contains(kind.short, word) {
			continue
		}
		version, of, _ := strings.Cut(group, ".")
		names := []string{"", strings.TrimPrefix(path.Dir(kind.api), "/apis/")}
		if slices.Contains(names, group) || version == "v1" && (of == "" && kind.api == "/api/v1" || of == names[1]) {
			return kind, true
		}
	}
	return explainedKind{}, false
}

func newExplainCommand(terminal *terminal, connection *connection) *cobra.Command {
	e := &explain{terminal: terminal, connection: connection}
	cmd := &cobra.Command{
		Use:   "explain (KIND NAME | KIND/NAME | -f FILE)",
		Short: "Report which identities and accounts a pod gets, from where, or why it is refused",
		Long: `Report of a pod which identities its service account gives it, whether the account may
use them, which files and variables its containers get, and what would be refused,
with the reason and what to do. Of a Windows pod that names GMSACredentialSpecs it
also shows which account each container runs as (credence gmsa explain does so without
a cluster). The rules are those of the webhook, applied to the cluster as it is now;
nothing is created. A pod that exists is judged as it was submitted: what Credence
has added to it is taken off first.

KIND is pod, deployment, statefulset, daemonset, replicaset, job or cronjob, of
which the pod template is looked at. With -f, the objects in a file of YAML or JSON
are, or in - standard input, before they are applied; other kinds are passed over.

Where you may create pods, a dry run creates such a pod on the API server without
keeping it, so that all of the cluster's rules decide, for you as the creator. Whether
a service account may use an identity is decided by the cluster, for which you need the
right to create subjectaccessreviews. With neither right the verdict is unknown.

An admitted pod waits for its tokens. If one can not come, the verdict is that
the pod does not start, with the reason: the agent lacks a right, the name of the
Secret is taken, or the newest warning of account, Secret and identity. A pod that
waits has the reason in a condition, which is printed too.

Exit codes: 0 it would be admitted; 1 it would be refused, not start, or get nothing
of what its service account lists; 2 wrong usage; 3 the verdict is unknown, or a
server could not be reached.`,
		Example: `  credence explain pod my-pod -n my-team
  credence explain deploy/my-app -n my-team
  credence explain -f my-app.yaml -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("filename") && len(args) > 0:
				return usageFailure(cmd, "-f names the objects: give no other arguments")
			case cmd.Flags().Changed("filename"):
				return nil
			}
			_, _, err := kindAndName(cmd, args)
			return err
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
		Annotations: map[string]string{needsCluster: "yes"},
	}
	cmd.Flags().StringVarP(&e.file, "filename", "f", "", "A file with the objects, or - for standard input")
	cmd.Flags().StringVar(&e.identityKubeconfig, "identity-kubeconfig", "", identityKubeconfigHelp)
	cmd.Flags().StringVarP(&e.output, "output", "o", "text", "What to print: text, json or yaml")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return kindNames(), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func kindNames() []string {
	var names []string
	for _, kind := range explainedKinds() {
		names = append(names, kind.name)
	}
	return names
}

// kindAndName reads KIND NAME, or KIND/NAME.
func kindAndName(cmd *cobra.Command, args []string) (explainedKind, string, error) {
	if len(args) == 1 {
		if kind, name, both := strings.Cut(args[0], "/"); both {
			args = []string{kind, name}
		}
	}
	if len(args) != 2 {
		return explainedKind{}, "", usageFailure(cmd, fmt.Sprintf("expected KIND NAME, KIND/NAME or -f FILE, got %s", plural(len(args), "argument", "arguments")))
	}
	kind, known := kindOf(args[0])
	if !known {
		return kind, "", usageFailure(cmd, fmt.Sprintf("%q is not a kind that has pods: those are %s", args[0], strings.Join(kindNames(), ", ")))
	}
	if err := checkName(args[1]); err != nil {
		return kind, "", usageFailure(cmd, err.Error())
	}
	return kind, args[1], nil
}

func (e *explain) run(cmd *cobra.Command, args []string) error {
	if err := oneOf(cmd, "output", e.output, "text", "json", "yaml"); err != nil {
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
		kind, name, err := kindAndName(cmd, args)
		if err != nil {
			return err
		}
		if err := both.workload.raw(cmd.Context(), &object, fmt.Sprintf("%s/namespaces/%s/%ss/%s", kind.api, home, kind.name, name)); err != nil {
			return request.objectFailure(fmt.Sprintf("read %s %s/%s", kind.name, home, name), err)
		}
		subject, err := subjectOf(object, kind.name, home)
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
	return exitOf(explanations)
}

// exitOf is the exit code of verdicts: a pod that gets nothing, or does not start, counts more than one that nothing is known of.
func exitOf(explanations []*podExplanation) error {
	code := 0
	for _, x := range explanations {
		switch {
		case x.Verdict == podRefused, x.Verdict == podUnserved, x.Verdict == podBlocked, x.GMSA != nil && x.GMSA.Verdict == podRefused:
			return &failure{code: exitRefused}
		case x.Verdict == podUnknown:
			code = exitOutage
		}
	}
	if code == 0 {
		return nil
	}
	return &failure{code: code}
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

// objectFailure words an error on an object other than an identity.
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
