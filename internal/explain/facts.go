package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/gmsa"
)

// Facts is what is known of GMSACredentialSpecs and of the rights to use them. Each is looked up once.
type Facts struct {
	Cluster *cluster.API // nil: no cluster is queried
	specs   map[string]gmsa.Spec
	sources map[string]string // of each spec that is known, where it is from
	uses    map[string]reviewedUse
	notes   []string
}

// NewFacts returns the facts of a cluster; nil: of none.
func NewFacts(cluster *cluster.API) *Facts {
	return &Facts{Cluster: cluster, specs: map[string]gmsa.Spec{}, sources: map[string]string{}, uses: map[string]reviewedUse{}}
}

// reviewedUse is an answer to whether a service account may use a spec.
type reviewedUse struct {
	authority.Answer
	known bool
}

// Note adds what could not be found out, once.
func (f *Facts) Note(text string) {
	if !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

// maxListDepth bounds how deep lists may be nested.
const maxListDepth = 100

// credspecObject is a GMSACredentialSpec, or a list that may have some.
type credspecObject struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Metadata   struct{ Name string } `json:"metadata"`
	Credspec   map[string]any        `json:"credspec"`
	Items      []json.RawMessage     `json:"items"`
}

// AddSpecs takes the GMSACredentialSpecs of an object that stands at this depth of a source.
func (f *Facts) AddSpecs(object []byte, source string, depth int) {
	var o credspecObject
	if json.Unmarshal(object, &o) != nil || depth > maxListDepth {
		return
	}
	if strings.HasSuffix(o.Kind, "List") {
		for _, item := range o.Items {
			f.AddSpecs(item, source, depth+1)
		}
		return
	}
	if group, _, _ := strings.Cut(o.APIVersion, "/"); group == windowsv1.GroupName && o.Kind == "GMSACredentialSpec" {
		f.specs[o.Metadata.Name], f.sources[o.Metadata.Name] = gmsa.SpecOf(o.Credspec), source
	}
}

// spec is the GMSACredentialSpec of a name, which names no other place of the API; known is false if it could not be read.
func (f *Facts) spec(ctx context.Context, name string) (spec gmsa.Spec, known bool) {
	if _, known := f.sources[name]; known || f.Cluster == nil {
		return f.specs[name], known
	}
	var o credspecObject
	err := f.Cluster.Get(ctx, &o, cluster.Place{API: "/apis/" + windowsv1.SchemeGroupVersion.String(), Resource: windowsv1.ResourceName, Name: name})
	switch {
	case apierrors.IsNotFound(err):
		f.specs[name] = gmsa.Spec{}
	case apierrors.IsForbidden(err):
		f.Note(fmt.Sprintf("you may not read GMSACredentialSpec %s: that there is such an object is taken for granted", name))
		return gmsa.Spec{}, false
	case err != nil:
		f.unreachable(err)
		return gmsa.Spec{}, false
	default:
		f.specs[name] = gmsa.SpecOf(o.Credspec)
	}
	f.sources[name] = "the cluster"
	return f.specs[name], true
}

// unreachable stops the queries: the next one would have to wait as long.
func (f *Facts) unreachable(err error) {
	f.Note(fmt.Sprintf("the cluster %s could not be queried: %v", f.Cluster.Host, err))
	f.Cluster = nil
}

// use reports whether a service account may use a GMSACredentialSpec.
func (f *Facts) use(ctx context.Context, namespace, account, name string) reviewedUse {
	key := namespace + "/" + account + "/" + name
	if use, asked := f.uses[key]; asked || f.Cluster == nil {
		return use
	}
	answer, err := authority.Ask(ctx, f.Cluster, authority.Use(authority.ServiceAccount(namespace, account, ""), authority.GMSACredentialSpecs, namespace, name))
	var use reviewedUse
	switch {
	case apierrors.IsForbidden(err):
		f.Note("you may not create subjectaccessreviews: that the service account may use its credential specs is taken for granted")
	case err != nil:
		f.unreachable(err)
	default:
		use = reviewedUse{answer, true}
	}
	f.uses[key] = use
	return use
}
