package facts

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
)

// cluster is what the sources read, and which of them fail.
type cluster struct {
	annotation string // of the service account
	missing    string // sources whose objects do not exist
	broken     string // the source that fails

	mu   *sync.Mutex
	read []string
}

var errBroken = errors.New("broken")

func read[T any](c *cluster, source, name string, value T) (T, error) {
	c.mu.Lock()
	c.read = append(c.read, source)
	c.mu.Unlock()
	if c.broken == source {
		return value, errBroken
	}
	if strings.Contains(c.missing, source) {
		return value, apierrors.NewNotFound(schema.GroupResource{Resource: source}, name)
	}
	return value, nil
}

func (c *cluster) sources() Sources {
	c.mu = &sync.Mutex{}
	return Sources{
		ServiceAccount: func(_ context.Context, _, name string) (*corev1.ServiceAccount, error) {
			account := &corev1.ServiceAccount{}
			account.Name, account.Annotations = name, map[string]string{v1alpha1.AnnotationAccountIdentities: c.annotation}
			return read(c, "account", name, account)
		},
		Identity: func(_ context.Context, _, name string) (*v1alpha1.WorkloadIdentity, error) {
			wi := &v1alpha1.WorkloadIdentity{}
			wi.Spec.TargetSystem.Type = "aws"
			return read(c, "identity", name, wi)
		},
		Right: func(_ context.Context, q authority.Question) (authority.Answer, error) {
			return read(c, "right", q.String(), authority.Answer{Allowed: true, Detail: "a role"})
		},
		Delivery: func(_ context.Context, namespace string) (string, error) {
			return read(c, "delivery", namespace, v1alpha1.DeliveryCSI)
		},
		Nodes: func(_ context.Context, class string) (map[string]string, error) {
			return read(c, "nodes", class, map[string]string{corev1.LabelOSStable: "windows"})
		},
	}
}

func podOf(account, class string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: account}}
	if class != "" {
		pod.Spec.RuntimeClassName = &class
	}
	return pod
}

// A request has what exists, and is allowed nothing that is not known. An error of any source ends the gathering.
func TestGather(t *testing.T) {
	exists := func(r *pods.Request) bool { return len(r.Account.Identities) == 1 && r.Account.Identities[0].Exists }
	for name, test := range map[string]struct {
		cluster cluster
		pod     *corev1.Pod
		change  func(*pods.Request)
		reads   string // the sources that must be read, in any order
		holds   func(*pods.Request) bool
	}{
		"all": {cluster{annotation: "banana"}, podOf("web", "windows"), nil, "account identity right delivery nodes", func(r *pods.Request) bool {
			i := r.Account.Identities
			return r.Account.Exists && exists(r) && i[0].Allowed && i[0].Detail == "a role" && i[0].Type == "aws" && r.Delivery == v1alpha1.DeliveryCSI && r.RuntimeClassNodes[corev1.LabelOSStable] == "windows"
		}},
		"no account name": {cluster{annotation: "banana"}, podOf("", ""), nil, "", func(r *pods.Request) bool { return !r.Account.Exists }},
		"no account":      {cluster{missing: "account"}, podOf("web", ""), nil, "account", func(r *pods.Request) bool { return !r.Account.Exists && r.Account.Name == "web" }},
		"no identities":   {cluster{}, podOf("web", "windows"), nil, "account", func(r *pods.Request) bool { return r.Account.Exists && r.Delivery == "" }},
		"no identity": {cluster{annotation: "banana", missing: "identity"}, podOf("web", ""), nil, "account identity delivery", func(r *pods.Request) bool {
			return len(r.Account.Identities) == 1 && !exists(r) && !r.Account.Identities[0].Allowed
		}},
		"no runtime class":               {cluster{annotation: "banana", missing: "nodes"}, podOf("web", "unknown"), nil, "account identity right delivery nodes", func(r *pods.Request) bool { return r.RuntimeClassNodes == nil && exists(r) }},
		"a namespace without identities": {cluster{annotation: "banana"}, podOf("web", ""), func(r *pods.Request) { r.NoIdentities = true }, "account", func(r *pods.Request) bool { return r.Account.Identities == nil }},
		// For a pod that runs, only the identities that it has are read.
		"a pod that runs": {cluster{annotation: "banana"}, podOf("web", ""), func(r *pods.Request) { r.Ephemeral = []string{"debug"} }, "account", func(r *pods.Request) bool {
			return len(r.Account.Identities) == 1 && !exists(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			gather := func(c cluster) (*cluster, *pods.Request, *pods.Denial, error) {
				r := &pods.Request{Namespace: "ns", Pod: test.pod}
				if test.change != nil {
					test.change(r)
				}
				sources := c.sources()
				denial, err := sources.Gather(t.Context(), r)
				return &c, r, denial, err
			}
			done, r, denial, err := gather(test.cluster)
			if denial != nil || err != nil || !test.holds(r) {
				t.Errorf("%+v, denial %v, %v", r, denial, err)
			}
			if len(done.read) != len(strings.Fields(test.reads)) {
				t.Errorf("read %v, want %s", done.read, test.reads)
			}
			for _, source := range strings.Fields(test.reads) {
				c := test.cluster
				c.broken = source
				if _, _, denial, err := gather(c); !errors.Is(err, errBroken) || denial != nil {
					t.Errorf("%s fails: denial %v, %v", source, denial, err)
				}
			}
		})
	}
}

// A list that can't be read is denied to new pods, and reads nothing more.
func TestInvalidListIsDenied(t *testing.T) {
	for ephemeral, denied := range map[string]bool{"": true, "debug": false} {
		c := &cluster{annotation: "banana,,"}
		r := &pods.Request{Namespace: "ns", Pod: podOf("web", "")}
		if ephemeral != "" {
			r.Ephemeral = []string{ephemeral}
		}
		if denial, err := c.sources().Gather(t.Context(), r); (denial != nil) != denied || err != nil || len(c.read) != 1 {
			t.Errorf("ephemeral %q: denial %v, %v, read %v", ephemeral, denial, err, c.read)
		}
	}
}

// The profile of an account replaces its annotation. An account may lack a profile, and a profile its template; other errors are errors.
func TestGatherWithAProfile(t *testing.T) {
	name := "baseline"
	listing := &accounts.ServiceAccountProfile{}
	listing.Spec.WorkloadIdentities = []string{"fig"}
	templated := listing.DeepCopy()
	templated.Spec.SecurityContext = &accounts.ProfileSecurityContext{TemplateRef: &accounts.TemplateReference{Name: name}}
	for what, test := range map[string]struct {
		profile         *accounts.ServiceAccountProfile
		missing, broken string
		want            string // the identity
		template        string
	}{
		"a profile":      {profile: listing, want: "fig"},
		"no profile":     {profile: listing, missing: "profile", want: "banana"},
		"a template":     {profile: templated, want: "fig", template: name},
		"no template":    {profile: templated, missing: "template", want: "fig", template: name},
		"profile fails":  {profile: listing, broken: "profile"},
		"template fails": {profile: templated, broken: "template"},
	} {
		c := &cluster{missing: test.missing, broken: test.broken}
		if test.want == "banana" {
			c.annotation = "banana"
		}
		sources := c.sources()
		sources.Profile = func(_ context.Context, _, name string) (*accounts.ServiceAccountProfile, error) {
			return read(c, "profile", name, test.profile)
		}
		sources.Template = func(_ context.Context, name string) (*accounts.SecurityContextTemplate, error) {
			return read(c, "template", name, &accounts.SecurityContextTemplate{})
		}
		r := &pods.Request{Namespace: "ns", Pod: podOf("web", "")}
		_, err := sources.Gather(t.Context(), r)
		if errors.Is(err, errBroken) != (test.broken != "") {
			t.Errorf("%s: %v", what, err)
		}
		if test.broken == "" && (len(r.Account.Identities) != 1 || r.Account.Identities[0].Name != test.want || r.Profile.Template != test.template) {
			t.Errorf("%s: %+v", what, r)
		}
	}
}
