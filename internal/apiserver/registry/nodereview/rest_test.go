package nodereview_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/apiserver/registry/nodereview"
	"github.com/credence-id/credence/test/testkit"
)

// world is a cluster with a pod on node-1 that has what its profile wants.
type world struct {
	caller    *user.DefaultInfo
	namespace *corev1.Namespace
	pod       *corev1.Pod
	profile   *accounts.ServiceAccountProfile
	others    []runtime.Object
	// broken is the resource that the cluster answers with an error.
	broken string
	admit  func(context.Context, runtime.Object) error
	spec   identityv1alpha1.NodeReviewSpec
}

const (
	credspec = `{"CmsPlugins":["ActiveDirectory"],"Sid":"S-1-5-21-1"}`
	another  = `{"CmsPlugins":["ActiveDirectory"],"Sid":"S-1-5-21-2"}`
)

func newWorld() *world {
	return &world{
		caller:    &user.DefaultInfo{Name: "system:node:node-1", Groups: []string{"system:nodes", "system:authenticated"}},
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{accounts.LabelNamespaceProfiles: accounts.NamespaceEnabled}}},
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "uid"}, Spec: corev1.PodSpec{
			NodeName: "node-1", ServiceAccountName: "cart",
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)},
			InitContainers:  []corev1.Container{{Name: "first"}}, Containers: []corev1.Container{{Name: "main"}},
		}},
		profile: &accounts.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Spec: accounts.ServiceAccountProfileSpec{
			SecurityContext: &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, SecurityContexts: accounts.SecurityContexts{Pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}}},
		}},
		spec: identityv1alpha1.NodeReviewSpec{Namespace: "shop", Name: "cart", UID: "uid", Container: "main"},
	}
}

// lax takes from the pod what its profile wants.
func (w *world) lax() { w.pod.Spec.SecurityContext = nil }

// debugged adds an ephemeral container.
func (w *world) debugged(c *corev1.SecurityContext) {
	w.pod.Spec.EphemeralContainers = append(w.pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", SecurityContext: c}})
}

// windows gives the pod a credential spec, and the runtime the same one.
func (w *world) windows(contents string) {
	w.pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
	w.pod.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: ptr.To("webapp"), GMSACredentialSpec: ptr.To(contents)}
	w.spec.CredentialSpec = contents
	w.others = append(w.others, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": windowsv1.SchemeGroupVersion.String(), "kind": "GMSACredentialSpec", "metadata": map[string]any{"name": "webapp"},
		"credspec": map[string]any{"CmsPlugins": []any{"ActiveDirectory"}, "Sid": "S-1-5-21-1"},
	}})
}

// Authorize lets account shop/cart use the credential spec webapp, and nothing else.
func (w *world) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if w.broken == "subjectaccessreviews" {
		return authorizer.DecisionNoOpinion, "", errors.New("no authorizer")
	}
	if a.GetUser().GetName() == "system:serviceaccount:shop:cart" && a.GetVerb() == "use" && a.GetAPIGroup() == windowsv1.GroupName && a.GetName() == "webapp" && a.GetNamespace() == "shop" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (w *world) review(t *testing.T) (identityv1alpha1.NodeReviewStatus, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nodev1.AddToScheme, accounts.AddToScheme} {
		testkit.Must(t, add(scheme))
	}
	objects := append([]runtime.Object{w.pod, w.namespace}, w.others...)
	if w.profile != nil {
		objects = append(objects, w.profile)
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{windowsv1.SchemeGroupVersion.WithResource(windowsv1.ResourceName): "GMSACredentialSpecList"}, objects...)
	client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetResource().Resource == w.broken, nil, errors.New("no etcd")
	})
	ctx := context.Background()
	if w.caller != nil {
		ctx = request.WithUser(ctx, w.caller)
	}
	answer, err := nodereview.NewREST(nodereview.Live(client, w)).Create(ctx, &identityv1alpha1.NodeReview{Spec: w.spec, Status: identityv1alpha1.NodeReviewStatus{Allowed: true}}, w.admit, &metav1.CreateOptions{})
	if err != nil {
		return identityv1alpha1.NodeReviewStatus{}, err
	}
	return answer.(*identityv1alpha1.NodeReview).Status, nil
}

// Each refusal is of one thing that is otherwise as it must be.
func TestCallersThatAreRefused(t *testing.T) {
	token := func(nodes ...string) *user.DefaultInfo {
		return &user.DefaultInfo{Name: "system:serviceaccount:node:guard", Extra: map[string][]string{serviceaccount.NodeNameKey: nodes}}
	}
	for name, test := range map[string]struct {
		change func(*world)
		code   int32
		text   string
	}{
		"of no one":               {func(w *world) { w.caller = nil }, http.StatusUnauthorized, "authenticated"},
		"of an admin":             {func(w *world) { w.caller.Name = "admin" }, http.StatusForbidden, `user "admin" is not of one node`},
		"of the name alone":       {func(w *world) { w.caller.Groups = nil }, http.StatusForbidden, "is not of one node"},
		"of a node without name":  {func(w *world) { w.caller.Name = "system:node:" }, http.StatusForbidden, "is not of one node"},
		"of another node":         {func(w *world) { w.caller.Name = "system:node:node-2" }, http.StatusForbidden, `node "node-2" has no pod shop/cart with uid "uid"`},
		"by a token without node": {func(w *world) { w.caller = token() }, http.StatusForbidden, "is not of one node"},
		"by one of two nodes":     {func(w *world) { w.caller = token("node-1", "node-2") }, http.StatusForbidden, "is not of one node"},
		"by one of another node":  {func(w *world) { w.caller = token("node-2") }, http.StatusForbidden, `node "node-2" has no pod`},
		"a kubelet by a token of another node": {func(w *world) { w.caller.Extra = map[string][]string{serviceaccount.NodeNameKey: {"node-2"}} },
			http.StatusForbidden, "is not of one node"},
		"a pod that does not exist": {func(w *world) { w.spec.Name = "other" }, http.StatusForbidden, `node "node-1" has no pod shop/other`},
		"a pod that was made again": {func(w *world) { w.spec.UID = "old" }, http.StatusForbidden, `node "node-1" has no pod shop/cart with uid "old"`},
		"a pod that is not on it":   {func(w *world) { w.pod.Spec.NodeName = "" }, http.StatusForbidden, `node "node-1" has no pod`},
		"no namespace":              {func(w *world) { w.spec.Namespace = "" }, http.StatusUnprocessableEntity, "spec.namespace"},
		"no name":                   {func(w *world) { w.spec.Name = "" }, http.StatusUnprocessableEntity, "spec.name"},
		"no uid":                    {func(w *world) { w.spec.UID = "" }, http.StatusUnprocessableEntity, "spec.uid"},
		"a long container":          {func(w *world) { w.spec.Container = strings.Repeat("c", 254) }, http.StatusUnprocessableEntity, "spec.container"},
		"a long credential spec":    {func(w *world) { w.spec.CredentialSpec = strings.Repeat(" ", 64<<10+1) }, http.StatusUnprocessableEntity, "spec.credentialSpec"},
		"admission": {func(w *world) {
			w.admit = func(context.Context, runtime.Object) error {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("by a policy"))
			}
		}, http.StatusForbidden, "by a policy"},
		"pods can't be read":       {func(w *world) { w.broken = "pods" }, http.StatusServiceUnavailable, "pod shop/cart can't be read"},
		"namespaces can't be read": {func(w *world) { w.broken = "namespaces" }, http.StatusServiceUnavailable, "read namespaces shop: no etcd"},
		"profiles can't be read":   {func(w *world) { w.broken = "serviceaccountprofiles" }, http.StatusServiceUnavailable, "read serviceaccountprofiles cart: no etcd"},
		"accounts can't be read":   {func(w *world) { w.broken = "serviceaccounts" }, http.StatusServiceUnavailable, "read serviceaccounts cart: no etcd"},
		"specs can't be read":      {func(w *world) { w.windows(credspec); w.broken = windowsv1.ResourceName }, http.StatusServiceUnavailable, "read GMSACredentialSpec webapp: no etcd"},
		"rights can't be reviewed": {func(w *world) { w.windows(credspec); w.broken = "subjectaccessreviews" }, http.StatusServiceUnavailable, "no authorizer"},
		"templates can't be read": {func(w *world) {
			w.profile.Spec.SecurityContext.TemplateRef, w.broken = &accounts.TemplateReference{Name: "strict"}, "securitycontexttemplates"
		}, http.StatusServiceUnavailable, "read securitycontexttemplates strict: no etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			test.change(w)
			status, err := w.review(t)
			refusal := apierrors.APIStatus(nil)
			if !errors.As(err, &refusal) || refusal.Status().Code != test.code || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%+v, %v, want %d %s", status, err, test.code, test.text)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	all := []string{"first", "main"}
	for name, test := range map[string]struct {
		change func(*world)
		covers []string // of an allowed pod
		reason string   // of one that is held
	}{
		"has what its profile wants": {func(*world) {}, all, ""},
		"by a token of the node": {func(w *world) {
			w.caller = &user.DefaultInfo{Name: "system:serviceaccount:node:guard", Extra: map[string][]string{serviceaccount.NodeNameKey: {"node-1"}}}
		}, all, ""},
		"all containers":      {func(w *world) { w.spec.Container = "" }, all, ""},
		"lacks what it wants": {(*world).lax, nil, "spec.initContainers[0].securityContext.runAsNonRoot: has nothing, and ServiceAccountProfile shop/cart wants true"},
		"another container":   {func(w *world) { w.spec.Container = "other" }, nil, `the pod has no container "other"`},
		"without a profile":   {func(w *world) { w.lax(); w.profile = nil }, all, ""},
		"a namespace without": {func(w *world) { w.lax(); w.namespace.Labels = nil }, all, ""},
		"a namespace with identities": {func(w *world) {
			w.lax()
			w.namespace.Labels = map[string]string{"identity.credence.dev/workload-identities": "enabled"}
		}, nil, "runAsNonRoot: has nothing"},
		"fills in": {func(w *world) { w.lax(); w.profile.Spec.SecurityContext.Mode = accounts.ModeDefault }, all, ""},
		"blocks new pods": {func(w *world) {
			w.lax()
			w.profile.Spec.SecurityContext.Mode, w.profile.Spec.OnChange = "", accounts.OnChangeBlockNew
		}, all, ""},
		"Secrets": {func(w *world) {
			w.profile.Spec.Secrets = &accounts.ProfileSecrets{Allowed: []string{}}
			w.pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "other"}}
		}, all, ""},
		"its template": {func(w *world) {
			w.lax()
			w.profile.Spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, TemplateRef: &accounts.TemplateReference{Name: "strict"}}
			w.others = append(w.others, &accounts.SecurityContextTemplate{ObjectMeta: metav1.ObjectMeta{Name: "strict"}, Spec: accounts.SecurityContexts{Pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}}})
		}, nil, "kubectl edit securitycontexttemplate strict"},
		"a template that is missing": {func(w *world) {
			w.profile.Spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, TemplateRef: &accounts.TemplateReference{Name: "strict"}}
		}, nil, "ServiceAccountProfile shop/cart can not be applied"},
		"of Windows by its RuntimeClass": {func(w *world) {
			w.pod.Spec.RuntimeClassName = ptr.To("windows")
			w.profile.Spec.SecurityContext.SecurityContexts = accounts.SecurityContexts{Windows: &corev1.WindowsSecurityContextOptions{RunAsUserName: ptr.To("ContainerUser")}}
			w.others = append(w.others, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "windows"}, Handler: "runhcs", Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{corev1.LabelOSStable: "windows"}}})
		}, nil, "windowsOptions.runAsUserName"},

		"an ephemeral container": {func(w *world) { w.debugged(nil); w.spec.Container = "debug" }, []string{"debug"}, ""},
		"one of a pod that lacks": {func(w *world) {
			w.lax()
			w.debugged(&corev1.SecurityContext{RunAsNonRoot: ptr.To(true)})
			w.spec.Container = "debug"
		}, []string{"debug"}, ""},
		"one that lacks": {func(w *world) {
			w.debugged(&corev1.SecurityContext{RunAsNonRoot: ptr.To(false)})
			w.spec.Container = "debug"
		}, nil, "spec.ephemeralContainers[0].securityContext.runAsNonRoot: has false"},
		"another one of one that lacks": {func(w *world) { w.debugged(&corev1.SecurityContext{RunAsNonRoot: ptr.To(false)}) }, all, ""},

		"a credential spec": {func(w *world) { w.windows(credspec) }, all, ""},
		"spelled otherwise": {func(w *world) { w.windows(`{ "Sid":"S-1-5-21-1", "CmsPlugins":["ActiveDirectory"]}`) }, all, ""},
		"of another object": {func(w *world) { w.windows(another) }, nil, "gmsaCredentialSpec: has sha256:"},
		"of no object":      {func(w *world) { w.windows(credspec); w.others = nil }, nil, `there is no GMSACredentialSpec "webapp"`},
		"without a name": {func(w *world) {
			w.windows(credspec)
			w.pod.Spec.SecurityContext.WindowsOptions.GMSACredentialSpecName = nil
		}, nil, "gmsaCredentialSpec is set, and"},
		"not filled in":           {func(w *world) { w.windows(""); w.pod.Spec.SecurityContext.WindowsOptions.GMSACredentialSpec = nil }, nil, "gmsaCredentialSpec: has nothing, and the GMSACredentialSpec has sha256:"},
		"of an account without":   {func(w *world) { w.windows(credspec); w.pod.Spec.ServiceAccountName = "other" }, nil, `service account "other" of namespace "shop" may not use GMSACredentialSpec "webapp"`},
		"another one at runtime":  {func(w *world) { w.windows(credspec); w.spec.CredentialSpec = another }, nil, `container "main" has a credential spec at the container runtime that is not the one of its pod`},
		"one at the runtime only": {func(w *world) { w.spec.CredentialSpec = credspec }, nil, "that is not the one of its pod"},
		"a container's own": {func(w *world) {
			w.windows(credspec)
			w.pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: w.pod.Spec.SecurityContext.WindowsOptions}
			w.pod.Spec.SecurityContext.WindowsOptions = nil
		}, all, ""},
		"another container's own": {func(w *world) {
			w.windows(credspec)
			w.pod.Spec.InitContainers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: w.pod.Spec.SecurityContext.WindowsOptions}
			w.pod.Spec.SecurityContext.WindowsOptions = nil
		}, nil, "that is not the one of its pod"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			test.change(w)
			status := testkit.Need(w.review(t))(t)
			want := identityv1alpha1.NodeReviewStatus{Allowed: test.reason == "", Containers: test.covers, Reason: status.Reason}
			if diff := cmp.Diff(want, status); diff != "" || !strings.Contains(status.Reason, test.reason) || status.Allowed && status.Reason != "" {
				t.Errorf("want %q (-want +got):\n%s", test.reason, diff)
			}
			if strings.Contains(status.Reason, "S-1-5-21") {
				t.Errorf("contents are shown: %s", status.Reason)
			}
		})
	}
}
