package credentialsdata

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
)

const prefix = "system:serviceaccount:workload-clusters:"

// scene is the agent of east, which lists fruit and requests the data of the binding fruit/infra: that of the Secret keys/static, which consents.
type scene struct {
	caller    string
	namespace string
	request   v1alpha1.CredentialsDataRequest
	dryRun    []string
	mayUse    bool
	unread    bool // the WorkloadClusters
	listed    []string
	narrow    bool // without fromContexts
	objects   Objects
	binding   *v1alpha1.CredentialsBinding
	secret    *corev1.Secret
	failure   error // of reading the Secret
	admission error
	read      int
}

func newScene() *scene {
	return &scene{
		caller: prefix + "east-agent", namespace: "fruit", mayUse: true, listed: []string{"fruit"},
		binding: &v1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fruit", Name: "infra", UID: "u1"},
			SecretRef:  &v1alpha1.CredentialsReference{Namespace: "keys", Name: "static"},
		},
		secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "keys", Name: "static", UID: "u2", Labels: map[string]string{v1alpha1.LabelCopied: v1alpha1.CopiedEnabled},
			Annotations: map[string]string{v1alpha1.AnnotationCopiedFor: "trees, fruit"},
		}, Data: map[string][]byte{"accessKeyID": []byte("AKIA"), "secretAccessKey": []byte("s3cret")}},
	}
}

// Of implements clusters.Users.
func (s *scene) Of(name string) (*clusters.Cluster, error) {
	switch {
	case s.unread:
		return nil, unavailable.New("not read")
	case name == prefix+"both-agent":
		return nil, apierrors.NewForbidden(identityv1alpha1.Resource("workloadclusters"), "east", errors.New("of several"))
	case name != prefix+"east-agent" && name != prefix+"east-webhook":
		return nil, nil
	}
	return &clusters.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "u3"}, Spec: identityv1alpha1.WorkloadClusterSpec{Users: []string{prefix + "east-webhook", prefix + "east-agent"}, Identities: identityv1alpha1.WorkloadClusterIdentities{Namespaces: s.listed, FromContexts: !s.narrow}}}, nil
}

// Get implements rest.Getter.
func (s *scene) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if s.binding == nil || request.NamespaceValue(ctx) != s.binding.Namespace || name != s.binding.Name {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("credentialsbindings"), name)
	}
	return s.binding, nil
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (s *scene) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if s.mayUse && a.GetVerb() == "use" && a.GetResource() == "credentialsbindings" && a.GetAPIGroup() == v1alpha1.GroupName && a.GetNamespace() == s.namespace && a.GetName() == "infra" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// endpoint reads the Secret of the scene.
func (s *scene) endpoint(t *testing.T) *REST {
	client := fake.NewClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get, ok := action.(clienttesting.GetAction)
		if !ok || get.GetVerb() != "get" || get.GetResource().Resource != "secrets" {
			t.Errorf("the server does %v", action)
		}
		s.read++
		if s.failure != nil {
			return true, nil, s.failure
		}
		if s.secret == nil || get.GetNamespace() != s.secret.Namespace || get.GetName() != s.secret.Name {
			return true, nil, apierrors.NewNotFound(corev1.Resource("secrets"), get.GetName())
		}
		return true, s.secret, nil
	})
	return NewREST(Config{Bindings: s, Clusters: s, Objects: s.objects, Authorizer: s, Secrets: client.CoreV1()})
}

// reviewed is what a review of the context object would find.
func (s *scene) reviewed(t *testing.T) error {
	cluster, err := s.Of(s.caller)
	if err != nil {
		return err
	}
	binding := types.NamespacedName{Namespace: s.namespace, Name: "infra"}
	if err := s.endpoint(t).Reaches(t.Context(), cluster, binding, s.request.Spec.ContextObject); err != nil {
		return err
	}
	return s.endpoint(t).Consents(t.Context(), binding)
}

func (s *scene) create(t *testing.T) (map[string][]byte, error) {
	endpoint := s.endpoint(t)
	ctx := request.WithUser(request.WithNamespace(t.Context(), s.namespace), &user.DefaultInfo{Name: s.caller, Groups: []string{"system:serviceaccounts:workload-clusters"}})
	admit := func(_ context.Context, obj runtime.Object) error {
		if len(obj.(*v1alpha1.CredentialsDataRequest).Status.Data) > 0 {
			t.Error("admission is shown data")
		}
		return s.admission
	}
	out, err := endpoint.Create(ctx, "infra", &s.request, admit, &metav1.CreateOptions{DryRun: s.dryRun})
	if err != nil {
		return nil, err
	}
	return out.(*v1alpha1.CredentialsDataRequest).Status.Data, nil
}

func TestData(t *testing.T) {
	for what, test := range map[string]struct {
		change func(*scene)
		code   int32
		words  string
		read   bool // the Secret is read
	}{
		"the agent":     {code: http.StatusOK, read: true},
		"by its uid":    {change: func(s *scene) { s.request.UID = "u1" }, code: http.StatusOK, read: true},
		"with a status": {change: func(s *scene) { s.request.Status.Data = map[string][]byte{"forged": nil} }, code: http.StatusOK, read: true},

		"a person":                          {change: func(s *scene) { s.caller = "admin" }, code: 403, words: "no WorkloadCluster lists"},
		"an agent of no cluster":            {change: func(s *scene) { s.caller = prefix + "left-agent" }, code: 403, words: "no WorkloadCluster lists"},
		"the agent of the identity cluster": {change: func(s *scene) { s.caller = ownAgent }, code: http.StatusOK, read: true},
		"the same without use":              {change: func(s *scene) { s.caller, s.mayUse = ownAgent, false }, code: 403, words: "credence:workloadidentities:granter there, can grant it the verb use"},
		"the same for an object": {change: func(s *scene) {
			s.caller, s.request.Spec.ContextObject = ownAgent, &v1alpha1.ContextObject{APIVersion: "v1", Kind: "ServiceAccount", Name: "web"}
		}, code: 403, words: "data is given to agents alone"},
		"another account of that namespace": {change: func(s *scene) { s.caller = "system:serviceaccount:credence-system:credence-webhook" }, code: 403, words: "data is given to agents alone"},
		"an agent of two":                   {change: func(s *scene) { s.caller = prefix + "both-agent" }, code: 403, words: "several"},
		"the webhook":                       {change: func(s *scene) { s.caller = prefix + "east-webhook" }, code: 403, words: "data is given to agents alone"},
		"clusters are not known":            {change: func(s *scene) { s.unread = true }, code: 503},
		"another namespace":                 {change: func(s *scene) { s.listed = []string{"trees"} }, code: 403, words: "does not list the namespace fruit"},
		"without use":                       {change: func(s *scene) { s.mayUse = false }, code: 403, words: "credence:workloadidentities:granter there, can grant it the verb use"},
		"refused by admission":              {change: func(s *scene) { s.admission = apierrors.NewBadRequest("policy") }, code: 400, words: "policy"},
		"another name":                      {change: func(s *scene) { s.request.Name = "other" }, code: 400, words: "metadata.name"},

		"no such binding": {change: func(s *scene) { s.binding = nil }, code: 404},
		"of another uid":  {change: func(s *scene) { s.request.UID = types.UID("u0") }, code: 409, words: "another uid"},
		"flipped to an identity": {change: func(s *scene) {
			s.binding.SecretRef, s.binding.WorkloadIdentityRef = nil, s.binding.SecretRef
		}, code: 409, words: "refers to no Secret"},

		"the server may not":      {change: func(s *scene) { s.failure = apierrors.NewForbidden(corev1.Resource("secrets"), "static", nil) }, code: 403, words: "kubectl create rolebinding credence-credentials -n keys --clusterrole=credence:apiserver:credentials", read: true},
		"the API does not answer": {change: func(s *scene) { s.failure = errors.New("away: s3cret") }, code: 503, words: "can't be read now", read: true},
		"no such Secret":          {change: func(s *scene) { s.secret = nil }, code: 403, words: "does not exist, or does not consent", read: true},
		"no label":                {change: func(s *scene) { s.secret.Labels = nil }, code: 403, words: "does not exist, or does not consent", read: true},
		"another label":           {change: func(s *scene) { s.secret.Labels[v1alpha1.LabelCopied] = "true" }, code: 403, words: "does not consent", read: true},
		"no annotation":           {change: func(s *scene) { s.secret.Annotations = nil }, code: 403, words: "does not consent", read: true},
		"for bindings elsewhere":  {change: func(s *scene) { s.secret.Annotations[v1alpha1.AnnotationCopiedFor] = "trees,fruit-2,*" }, code: 403, words: "does not consent to bindings of the namespace fruit", read: true},
		"a token of its own":      {change: func(s *scene) { s.secret.Data["token"] = nil }, code: 409, words: "the key token", read: true},
		"a config of its own":     {change: func(s *scene) { s.secret.Data["config"] = nil }, code: 409, words: "the key config", read: true},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene()
			if test.change != nil {
				test.change(s)
			}
			data, err := s.create(t)
			if test.code == http.StatusOK {
				if diff := cmp.Diff(s.secret.Data, data); diff != "" || err != nil {
					t.Errorf("%v, data (-want +got):\n%s", err, diff)
				}
			} else {
				status := apierrors.APIStatus(nil)
				if !errors.As(err, &status) || status.Status().Code != test.code || !strings.Contains(err.Error(), test.words) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%v, want %d with %q", err, test.code, test.words)
				}
			}
			if (s.read > 0) != test.read {
				t.Errorf("the Secret was read %d times, want it read: %v", s.read, test.read)
			}
		})
	}
}

// A dry run finds out whether there is data, and gives none.
func TestDryRun(t *testing.T) {
	s := newScene()
	s.dryRun = []string{metav1.DryRunAll}
	if data, err := s.create(t); err != nil || len(data) > 0 {
		t.Errorf("%d keys, %v", len(data), err)
	}
	s.secret.Labels = nil
	if _, err := s.create(t); !apierrors.IsForbidden(err) {
		t.Errorf("without consent: %v", err)
	}
}
