package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/gmsa"
)

// gmsaExplain is "gmsa explain": it shows which account each container of a pod runs as, and why, by the rules of the webhook.
type gmsaExplain struct {
	*terminal
	connection *connection

	files   []string
	offline bool
	output  string
}

func newGMSAExplainCommand(terminal *terminal, connection *connection) *cobra.Command {
	e := &gmsaExplain{terminal: terminal, connection: connection}
	cmd := &cobra.Command{
		Use:   "explain -f FILE...",
		Short: "Report which credential spec each container of a pod gets, from where, and whether it is allowed",
		Long: `Report of pods, and of the pods that workloads would make, which credential spec each
container gets, from which field, whether the service account may use it, and what the
container runtime gets: through CRI, and in the OCI specification. The rules are
those of the webhook; nothing is created.

FILE is YAML or JSON, of one or several documents; - is standard input. GMSACredentialSpecs
in the files are taken as they are there, others are read from the cluster. The cluster
reviews whether the service account may use them, for which you need the right to
create subjectaccessreviews. A fact that it does not answer, or that --offline leaves out,
stays open, and a note reports it.

Exit codes: 0 it would be admitted, as far as is known; 1 it would be refused; 2 wrong
usage, or a file that cannot be used.`,
		Example: `  credence gmsa explain -f my-app.yaml -n my-team
  credence gmsa explain -f my-app.yaml -f webapp1-credspec.yaml --offline`,
		Args:        noArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
		Annotations: map[string]string{needsCluster: "yes"},
	}
	cmd.Flags().StringArrayVarP(&e.files, "filename", "f", nil, "A file with pods or workloads, or - for standard input; may be repeated; required")
	cmd.Flags().BoolVar(&e.offline, "offline", false, "Query no cluster")
	cmd.Flags().StringVarP(&e.output, "output", "o", "text", "What to print: text, json or yaml")
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (e *gmsaExplain) run(cmd *cobra.Command) error {
	if err := oneOf(cmd, "output", e.output, "text", "json", "yaml"); err != nil {
		return err
	}
	home, err := e.connection.home(cmd)
	if err != nil {
		return err
	}
	subjects, facts, err := e.read(cmd, home)
	if err != nil {
		return err
	}
	e.open(facts)
	stop := func() {}
	if facts.cluster != nil {
		stop = e.waitingFor("the API server " + facts.cluster.host)
	}
	var explanations []*gmsaExplanation
	refused := false
	for _, subject := range subjects {
		explanation, err := explainGMSA(cmd.Context(), facts, subject)
		if err != nil {
			stop()
			return fmt.Errorf("explain %s: %w", subject, err)
		}
		explanations = append(explanations, explanation)
		refused = refused || explanation.Verdict == podRefused
	}
	stop()
	if err := printExplained(e.out, e.output, explanations); err != nil {
		return err
	}
	if refused {
		return &failure{code: exitRefused}
	}
	return nil
}

// read finds pods, and GMSACredentialSpecs, in the files.
func (e *gmsaExplain) read(cmd *cobra.Command, home string) ([]podSubject, *gmsaFacts, error) {
	manifests, err := e.readManifests(cmd, e.files)
	if err != nil {
		return nil, nil, err
	}
	facts := newGMSAFacts(nil)
	var subjects []podSubject
	for _, m := range manifests {
		for _, document := range m.documents {
			if len(document.Content) == 0 || document.Content[0].Kind == yaml.ScalarNode && document.Content[0].ShortTag() == "!!null" {
				continue
			}
			object, err := placedJSON(document.Content[0])
			if err != nil {
				return nil, nil, usageFailure(cmd, fmt.Sprintf("-f: %s: %v", m.file, err))
			}
			some, err := subjectsOf(object.json, home)
			if err != nil {
				return nil, nil, usageFailure(cmd, fmt.Sprintf("-f: %s: %s", m.file, printable(err.Error())))
			}
			subjects = append(subjects, some...)
			facts.addSpecs(object.json, m.file, 0)
		}
	}
	if len(subjects) == 0 {
		return nil, nil, usageFailure(cmd, fmt.Sprintf("-f: %s: there is no object of a kind that has pods: %s", strings.Join(e.files, ", "), strings.Join(kindNames(), ", ")))
	}
	return subjects, facts, nil
}

// open connects to the cluster, if there is one to ask.
func (e *gmsaExplain) open(facts *gmsaFacts) {
	if e.offline {
		facts.note("no cluster was queried")
		return
	}
	cluster, err := e.connection.open(e.errOut)
	if err != nil {
		facts.note("no cluster can be queried: " + strings.TrimPrefix(err.Error(), "error: "))
		return
	}
	facts.cluster = cluster
}

// gmsaFacts is what is known of GMSACredentialSpecs and of the rights to use them. Each is looked up once.
type gmsaFacts struct {
	cluster *api // nil: no cluster is queried
	specs   map[string]gmsa.Spec
	sources map[string]string // of each spec that is known, where it is from
	uses    map[string]gmsaUse
	notes   []string
}

func newGMSAFacts(cluster *api) *gmsaFacts {
	return &gmsaFacts{cluster: cluster, specs: map[string]gmsa.Spec{}, sources: map[string]string{}, uses: map[string]gmsaUse{}}
}

// gmsaUse is an answer to whether a service account may use a spec.
type gmsaUse struct {
	authority.Answer
	known bool
}

func (f *gmsaFacts) note(text string) {
	if !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

// credspecObject is a GMSACredentialSpec, or a list that may have some.
type credspecObject struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Metadata   struct{ Name string } `json:"metadata"`
	Credspec   map[string]any        `json:"credspec"`
	Items      []json.RawMessage     `json:"items"`
}

func (f *gmsaFacts) addSpecs(object []byte, source string, depth int) {
	var o credspecObject
	if json.Unmarshal(object, &o) != nil || depth > maxNesting {
		return
	}
	if strings.HasSuffix(o.Kind, "List") {
		for _, item := range o.Items {
			f.addSpecs(item, source, depth+1)
		}
		return
	}
	if group, _, _ := strings.Cut(o.APIVersion, "/"); group == windowsv1.GroupName && o.Kind == "GMSACredentialSpec" {
		f.specs[o.Metadata.Name], f.sources[o.Metadata.Name] = specOf(o), source
	}
}

func specOf(o credspecObject) gmsa.Spec {
	contents, err := gmsa.Canonical(o.Credspec)
	if err != nil {
		return gmsa.Spec{Exists: true, Fault: err.Error()}
	}
	return gmsa.Spec{Exists: true, Contents: contents}
}

// spec is the GMSACredentialSpec of a name, which names no other place of the API; known is false if it could not be read.
func (f *gmsaFacts) spec(ctx context.Context, name string) (spec gmsa.Spec, known bool) {
	if _, known := f.sources[name]; known || f.cluster == nil {
		return f.specs[name], known
	}
	var o credspecObject
	err := f.cluster.raw(ctx, &o, "/apis/"+windowsv1.SchemeGroupVersion.String()+"/"+windowsv1.ResourceName+"/"+name)
	switch {
	case apierrors.IsNotFound(err):
		f.specs[name] = gmsa.Spec{}
	case apierrors.IsForbidden(err):
		f.note(fmt.Sprintf("you may not read GMSACredentialSpec %s: that there is such an object is taken for granted", name))
		return gmsa.Spec{}, false
	case err != nil:
		f.unreachable(err)
		return gmsa.Spec{}, false
	default:
		f.specs[name] = specOf(o)
	}
	f.sources[name] = "the cluster"
	return f.specs[name], true
}

// unreachable stops the queries: the next one would have to wait as long.
func (f *gmsaFacts) unreachable(err error) {
	f.note(fmt.Sprintf("the cluster %s could not be queried: %v", f.cluster.host, err))
	f.cluster = nil
}

// use reports whether a service account may use a GMSACredentialSpec.
func (f *gmsaFacts) use(ctx context.Context, namespace, account, name string) gmsaUse {
	key := namespace + "/" + account + "/" + name
	if use, asked := f.uses[key]; asked || f.cluster == nil {
		return use
	}
	answer, err := authority.Ask(ctx, f.cluster, authority.Use(authority.ServiceAccount(namespace, account, ""), authority.GMSACredentialSpecs, namespace, name))
	var use gmsaUse
	switch {
	case apierrors.IsForbidden(err):
		f.note("you may not create subjectaccessreviews: that the service account may use its credential specs is taken for granted")
	case err != nil:
		f.unreachable(err)
	default:
		use = gmsaUse{answer, true}
	}
	f.uses[key] = use
	return use
}
