package tokenrequest

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// selfWorld is a cluster in which all is well: an account that may use the identity, and its pod.
type selfWorld struct {
	caller   serviceaccount.ServiceAccountInfo
	account  *corev1.ServiceAccount
	pod      *corev1.Pod
	request  *Object
	reviews  reviews
	clusters Clusters
	// username is the account's outside of the cluster.
	username username
	// broken are the resources that the cluster answers with an error.
	broken []string
	// edit changes the caller, after it has become a user.
	edit func(*user.DefaultInfo)
}

// ends has the pod deleted some time ago, with a grace period.
func (w *selfWorld) ends(ago, period time.Duration) {
	w.pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(period - ago)}
	w.pod.DeletionGracePeriodSeconds = ptr.To(int64(period / time.Second))
}

// username is that of all accounts, or with a question mark not known.
type username string

func (u username) Username(context.Context, string, string) (string, error) {
	if u == "?" {
		return "", apierrors.NewServiceUnavailable("the profiles have not been read")
	}
	return string(u), nil
}

func newSelfWorld() *selfWorld {
	return &selfWorld{
		caller: serviceaccount.ServiceAccountInfo{
			Namespace: "ns", Name: "account", UID: "uid-of-account", PodName: "pod", PodUID: "uid-of-pod", NodeName: "node", NodeUID: "uid-of-node",
		},
		account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "account", UID: "uid-of-account"}},
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid-of-pod"},
			Spec:       corev1.PodSpec{ServiceAccountName: "account", NodeName: "node"},
		},
		request: &Object{},
		reviews: func(a authorizer.Attributes) (bool, error) {
			return a.GetVerb() == "use" && a.GetUser().GetName() == "system:serviceaccount:ns:account", nil
		},
		clusters: noClusters{},
		edit:     func(*user.DefaultInfo) {},
	}
}

func (w *selfWorld) create(t *testing.T, admit func(context.Context, runtime.Object) error) (*v1alpha1.TokenRequest, *counter, error) {
	t.Helper()
	self, recorder := w.serve(t)
	out, err := self.Create(w.ask(t), "one", w.request, admit, &metav1.CreateOptions{})
	if err != nil {
		return nil, recorder, err
	}
	return out.(*Object).request(), recorder, nil
}

// serve returns the endpoint, and ask the context of the caller's request.
func (w *selfWorld) serve(t *testing.T) (*SelfREST, *counter) {
	t.Helper()
	rest, recorder := newREST(t, w.reviews, testRing)
	rest.Clusters = w.clusters
	client := fake.NewClientset(w.account, w.pod)
	for _, resource := range w.broken {
		client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource(resource), "x", errors.New("no right"))
		})
	}
	return NewSelfREST(rest, ServiceAccounts(client.CoreV1(), w.username), client.CoreV1(), func(uid types.UID, expiry time.Time) { recorder.toPods[uid] = expiry }), recorder
}

func (w *selfWorld) ask(t *testing.T) context.Context {
	info := w.caller.UserInfo().(*user.DefaultInfo)
	w.edit(info)
	return request.WithUser(request.WithNamespace(t.Context(), "ns"), info)
}

func TestSelfToken(t *testing.T) {
	w := newSelfWorld()
	w.username = "web@example.com"
	tr, recorder, err := w.create(t, nil)
	testkit.Must(t, err)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(tr.Status.Token, ".")[1])
	testkit.Must(t, err)
	const want = `"kubernetes.io":{"namespace":"ns","serviceaccount":{"name":"account","uid":"uid-of-account"},"pod":{"name":"pod","uid":"uid-of-pod"},"node":{"name":"node","uid":"uid-of-node"}},"identity.credence.dev":{"username":"web@example.com"}`
	if !strings.Contains(string(payload), want) {
		t.Errorf("claims %s, want %s among them", payload, want)
	}
	if object := tr.Spec.ContextObject; object == nil || object.Name != "account" || object.UID != "uid-of-account" {
		t.Errorf("the answer names the context %+v", object)
	}
	if system := tr.Status.TargetSystem; system == nil || system.Type != "aws" {
		t.Errorf("the answer has the target system %+v", system)
	}
	if recorder.issued != 1 || recorder.signed != 1 || len(recorder.refused) != 0 || len(recorder.toPods) != 1 || !recorder.toPods["uid-of-one"].Equal(tr.Status.ExpirationTimestamp.Time) {
		t.Errorf("recorded %+v", recorder)
	}
	self, recorder := w.serve(t)
	if _, err := self.Create(w.ask(t), "one", w.request, nil, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || len(recorder.toPods) != 0 {
		t.Errorf("a dry run: %v, recorded %+v", err, recorder)
	}
}

// ofCluster has a cluster that each user is of.
type ofCluster struct{}

func (ofCluster) Of(string) (*clusters.Cluster, error) {
	return &identityv1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: identityv1alpha1.WorkloadClusterSpec{Identities: identityv1alpha1.WorkloadClusterIdentities{Namespaces: []string{"ns"}}}}, nil
}

// unknownClusters has not been read.
type unknownClusters struct{}

func (unknownClusters) Of(string) (*clusters.Cluster, error) {
	return nil, apierrors.NewServiceUnavailable("the clusters have not been read")
}

// Whatever a caller, its pod, or the cluster lacks, it gets no token: nothing is signed.
func TestSelfTokenRefusals(t *testing.T) {
	long := metav1.Duration{Duration: 2 * time.Hour}
	past, future := metav1.NewTime(time.Now().Add(-time.Second)), metav1.NewTime(time.Now().Add(time.Hour))
	for name, test := range map[string]struct {
		change func(*selfWorld)
		code   int32
		text   string
	}{
		"all is well":              {func(*selfWorld) {}, 0, ""},
		"itself as the context":    {func(w *selfWorld) { w.request.Spec.ContextObject = withContext().Spec.ContextObject }, 0, ""},
		"a pod that ends":          {func(w *selfWorld) { w.pod.DeletionTimestamp = &future }, 0, ""},
		"the uid is not passed on": {func(w *selfWorld) { w.caller.UID = "" }, 0, ""},
		"the node's uid is not":    {func(w *selfWorld) { w.caller.NodeUID = "" }, 0, ""},
		"a person":                 {func(w *selfWorld) { w.edit = func(u *user.DefaultInfo) { u.Name = "jane" } }, 403, "not a service account"},
		"a node":                   {func(w *selfWorld) { w.edit = func(u *user.DefaultInfo) { u.Name = "system:node:node" } }, 403, "not a service account"},
		"a name like an account's": {func(w *selfWorld) { w.edit = func(u *user.DefaultInfo) { u.Name += ":x" } }, 403, "not a service account"},
		"a token without a pod":    {func(w *selfWorld) { w.caller.PodName = "" }, 403, "not bound to a pod"},
		"a pod without a uid":      {func(w *selfWorld) { w.edit = func(u *user.DefaultInfo) { delete(u.Extra, serviceaccount.PodUIDKey) } }, 403, "not bound to a pod"},
		"a path as a pod":          {func(w *selfWorld) { w.caller.PodName = "../../secrets/x" }, 403, "not bound to a pod"},
		"two pods": {func(w *selfWorld) {
			w.edit = func(u *user.DefaultInfo) { u.Extra[serviceaccount.PodUIDKey] = []string{"uid-of-pod", "other"} }
		}, 403, "not bound to a pod"},
		"no node":                   {func(w *selfWorld) { w.caller.NodeName = "" }, 403, "names no node"},
		"an account of a cluster":   {func(w *selfWorld) { w.clusters = ofCluster{} }, 403, "of a WorkloadCluster"},
		"an account of joined ones": {func(w *selfWorld) { w.caller.Namespace = identityv1alpha1.WorkloadClusters }, 403, "of a WorkloadCluster"},
		"clusters are not known":    {func(w *selfWorld) { w.clusters = unknownClusters{} }, 503, "the clusters"},
		"too long":                  {func(w *selfWorld) { w.request.Spec.Duration = &long }, 422, "must not be longer than 1h0m0s"},
		"too short":                 {func(w *selfWorld) { w.request.Spec.Duration = &metav1.Duration{Duration: time.Minute} }, 422, "must not be shorter than 10m0s"},
		"a foreign context":         {func(w *selfWorld) { w.request.Spec.ContextObject = foreignContext("another", "uid-of-account") }, 422, "must be left out, or be the caller: the v1 ServiceAccount ns/account"},
		"a former self":             {func(w *selfWorld) { w.request.Spec.ContextObject = foreignContext("account", "former") }, 409, "deleted and created again"},
		"by a binding": {func(w *selfWorld) {
			w.request.Metadata.Annotations = map[string]string{v1alpha1.AnnotationBinding: "elsewhere/bound"}
		}, 422, "CredentialsBindings"},
		"the account is gone":            {func(w *selfWorld) { w.account.Name = "another" }, 403, "service account ns/account of the caller's token does not exist"},
		"the account is another":         {func(w *selfWorld) { w.account.UID = "new" }, 403, "deleted and created again"},
		"it may not use":                 {func(w *selfWorld) { w.reviews = func(authorizer.Attributes) (bool, error) { return false, nil } }, 403, "credence:workloadidentities:granter there, can grant it the verb use"},
		"the pod is gone":                {func(w *selfWorld) { w.pod.Name = "another" }, 403, "pod ns/pod of the caller's token does not exist"},
		"the pod of that name":           {func(w *selfWorld) { w.pod.UID = "new" }, 403, "deleted and created again"},
		"the pod had to be gone":         {func(w *selfWorld) { w.pod.DeletionTimestamp = &past }, 403, "was deleted, and had until"},
		"the pod has a long time to end": {func(w *selfWorld) { w.ends(9*time.Minute, 24*time.Hour) }, 0, ""},
		"the pod had ten minutes to end": {func(w *selfWorld) { w.ends(11*time.Minute, 24*time.Hour) }, 403, "or 10m0s"},
		"the pod has a longer time than can be counted": {func(w *selfWorld) {
			w.ends(time.Minute, time.Hour)
			w.pod.DeletionGracePeriodSeconds = ptr.To(int64(1e18))
		}, 403, "or 10m0s"},
		"the pod has succeeded":    {func(w *selfWorld) { w.pod.Status.Phase = corev1.PodSucceeded }, 403, "has ended: its phase is Succeeded"},
		"the pod has failed":       {func(w *selfWorld) { w.pod.Status.Phase = corev1.PodFailed }, 403, "has ended: its phase is Failed"},
		"a pod of another account": {func(w *selfWorld) { w.pod.Spec.ServiceAccountName = "another" }, 403, `runs as service account "another"`},
		"a pod on another node":    {func(w *selfWorld) { w.caller.NodeName = "elsewhere" }, 403, `is on node "node", and the token names node "elsewhere"`},
		"accounts can't be read":   {func(w *selfWorld) { w.broken = []string{"serviceaccounts"} }, 503, "can't be read"},
		"pods can't be read":       {func(w *selfWorld) { w.broken = []string{"pods"} }, 503, "can't be read"},
		"usernames are not known":  {func(w *selfWorld) { w.username = "?" }, 503, "the profiles"},
		"rights can't be reviewed": {func(w *selfWorld) {
			w.reviews = func(authorizer.Attributes) (bool, error) { return false, errors.New("refused") }
		}, 503, "refused"},
		"another uid of an identity": {func(w *selfWorld) { w.request.Metadata.UID = "other" }, 409, "deleted and created again"},
	} {
		w := newSelfWorld()
		test.change(w)
		tr, recorder, err := w.create(t, nil)
		if test.code == 0 {
			if err != nil || tr.Status.Token == "" {
				t.Errorf("%s: %v, want a token", name, err)
			}
			continue
		}
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != test.code || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want code %d with %q", name, err, test.code, test.text)
		}
		if test.code == http.StatusServiceUnavailable && !strings.HasPrefix(test.text, "the ") && status.Status().Details.RetryAfterSeconds == 0 {
			t.Errorf("%s: %v names no time to retry", name, err)
		}
		if recorder.issued+recorder.signed+len(recorder.toPods) != 0 || len(recorder.refused) != 1 {
			t.Errorf("%s: recorded %+v", name, recorder)
		}
	}
}

func foreignContext(name, uid string) *v1alpha1.ContextObject {
	object := *withContext().Spec.ContextObject
	object.Name, object.UID = name, types.UID(uid)
	return &object
}

// The pods of one namespace do not keep those of others, and no others, from their tokens.
func TestSelfTokensInFlight(t *testing.T) {
	w := newSelfWorld()
	reviewed, goOn := make(chan struct{}), make(chan struct{})
	w.reviews = func(a authorizer.Attributes) (bool, error) {
		if a.GetUser().GetName() == "system:serviceaccount:ns:account" {
			reviewed <- struct{}{}
			<-goOn
		}
		return true, nil
	}
	self, _ := w.serve(t)
	self.Recorder, self.issued = noRecorder{}, func(types.UID, time.Time) {}
	ask := func() error {
		_, err := self.Create(w.ask(t), "one", &Object{}, nil, &metav1.CreateOptions{})
		return err
	}
	answers := make(chan error, maxInFlight)
	for range maxInFlight {
		go func() { answers <- ask() }()
		<-reviewed
	}
	err := ask()
	if status := apierrors.APIStatus(nil); !apierrors.IsTooManyRequests(err) || !errors.As(err, &status) || status.Status().Details.RetryAfterSeconds == 0 {
		t.Errorf("one more than may be: %v, want 429", err)
	}
	w.caller.Namespace = "another"
	if err := ask(); err == nil || apierrors.IsTooManyRequests(err) {
		t.Errorf("a pod of another namespace: %v, want another refusal than 429", err)
	}
	w.caller.Namespace = "ns"
	close(goOn)
	for range maxInFlight {
		testkit.Expect(t, <-answers)
	}
	go func() { answers <- ask() }()
	<-reviewed
	testkit.Expect(t, <-answers, "after the others")
	if len(self.inFlight.of) != 0 {
		t.Errorf("still counted: %v", self.inFlight.of)
	}
}

// noRecorder counts nothing.
type noRecorder struct{}

func (noRecorder) Issued(identity.Algorithm)                {}
func (noRecorder) Signed(identity.Algorithm, time.Duration) {}
func (noRecorder) Refused(string)                           {}

// A pod without a right learns nothing of identities, and reaches neither the webhooks of admission nor other pods: of the cluster
// one right is reviewed, and nothing is read.
func TestSelfTokenRevealsNothing(t *testing.T) {
	w := newSelfWorld()
	w.broken = []string{"serviceaccounts", "pods"}
	var asked []string
	w.reviews = func(a authorizer.Attributes) (bool, error) {
		asked = append(asked, a.GetVerb()+" "+a.GetResource()+" "+a.GetNamespace()+"/"+a.GetName()+" by "+strings.Join(a.GetUser().GetGroups(), ","))
		return false, nil
	}
	_, _, err := w.create(t, func(context.Context, runtime.Object) error {
		t.Error("admission is shown a request without a right")
		return nil
	})
	if !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	if want := []string{"use workloadidentities ns/one by system:serviceaccounts,system:serviceaccounts:ns"}; !slices.Equal(asked, want) {
		t.Errorf("reviews %q, want %q", asked, want)
	}
	refusal := apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), "one", errors.New("by admission"))
	if _, recorder, err := newSelfWorld().create(t, func(_ context.Context, shown runtime.Object) error {
		if object := shown.(*Object).Spec.ContextObject; object == nil || *object != *withContext().Spec.ContextObject {
			t.Errorf("admission is shown the context %+v", object)
		}
		return refusal
	}); !errors.Is(err, refusal) || recorder.signed != 0 {
		t.Errorf("refused by admission: %v, %+v", err, recorder)
	}
}
