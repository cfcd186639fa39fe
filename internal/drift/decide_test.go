package drift_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

func role(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::123456789012:role/%s"}`, name)
}

// store is a pod of an account with one identity, as the API has stored it, and what was known then.
func store(t testing.TB) drift.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	pod.Spec = corev1.PodSpec{
		ServiceAccountName: "cart", Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}}}},
		Volumes: []corev1.Volume{{Name: "own"}},
	}
	p := drift.Pod{Enabled: true, Request: pods.Request{Namespace: "shop", Pod: pod, Adapters: targets.For, Account: pods.Account{Name: "cart", Exists: true, Identities: []pods.Identity{
		{Name: "store", Exists: true, Allowed: true, Type: "aws", ProviderConfig: role("cart")},
	}}}}
	admit(t, &p)
	return p
}

// admit makes the pod the one that admission makes of it.
func admit(t testing.TB, p *drift.Pod) {
	t.Helper()
	result := pods.Decide(p.Request)
	if result.Denial != nil {
		t.Fatal(result.Denial.Message)
	}
	var err error
	if p.Request.Pod, err = decision.Applied(p.Request.Pod, result.Patch); err != nil {
		t.Fatal(err)
	}
}

func decide(t *testing.T, p drift.Pod) drift.Finding {
	t.Helper()
	before := p.Request.Pod.DeepCopy()
	finding := testkit.Need(drift.Decide(p))(t)
	if diff := cmp.Diff(before, p.Request.Pod); diff != "" {
		t.Errorf("the pod was changed (-before +after):\n%s", diff)
	}
	return finding
}

func TestDecide(t *testing.T) {
	identity := func(p *drift.Pod) *pods.Identity { return &p.Request.Account.Identities[0] }
	for name, test := range map[string]struct {
		change func(p *drift.Pod)
		want   string
	}{
		"unchanged": {func(*drift.Pod) {}, "current"},
		"runs": {func(p *drift.Pod) {
			p.Request.Pod.Spec.SchedulingGates, p.Request.Pod.Spec.NodeName = nil, "node"
			p.Request.Pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
		}, "current"},
		"others added later": {func(p *drift.Pod) {
			p.Request.Pod.Spec.Volumes = append(p.Request.Pod.Spec.Volumes, corev1.Volume{Name: "mesh"})
			p.Request.Pod.Spec.Containers[0].VolumeMounts = append(p.Request.Pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "mesh", MountPath: "/mesh"})
			p.Request.Pod.Spec.Containers = append(p.Request.Pod.Spec.Containers, corev1.Container{Name: "mesh"})
			p.Request.Pod.Annotations = map[string]string{"identity.credence.dev/skip-containers": "mesh"}
		}, "current"},
		"another role": {func(p *drift.Pod) { identity(p).ProviderConfig = role("other") },
			"stale spec.containers[main].env[AWS_ROLE_ARN].value arn:aws:iam::123456789012:role/cart → arn:aws:iam::123456789012:role/other"},
		"another identity": {func(p *drift.Pod) { identity(p).Name = "store-2" },
			"stale spec.containers[main].env[AWS_WEB_IDENTITY_TOKEN_FILE].value /var/run/secrets/workload-identity/store/token → /var/run/secrets/workload-identity/store-2/token"},
		"taken off the account": {func(p *drift.Pod) { p.Request.Account.Identities = nil },
			`stale spec.containers[main].env[AWS_WEB_IDENTITY_TOKEN_FILE] {"name":"AWS_WEB_IDENTITY_TOKEN_FILE",* → (none)`},
		"label taken off": {func(p *drift.Pod) { p.Enabled = false },
			`stale spec.containers[main].env[AWS_ROLE_ARN] {"name":"AWS_ROLE_ARN",* → (none)`},
		"right taken away": {func(p *drift.Pod) { identity(p).Allowed = false }, `refused now: service account shop/cart may not use workload identity "store": *`},
		"deleted":          {func(p *drift.Pod) { *identity(p) = pods.Identity{Name: "store"} }, `identity missing: workload identity "store", named in annotation *`},
		"another is refused first": {func(p *drift.Pod) {
			identity(p).Allowed = false
			p.Request.Account.Identities = append(p.Request.Account.Identities, pods.Identity{Name: "z"})
		}, `refused now: service account shop/cart may not use workload identity "store": *`},
		"being deleted":       {func(p *drift.Pod) { identity(p).Deleting = true }, "refused now: workload identity shop/store is being deleted, *"},
		"account deleted":     {func(p *drift.Pod) { p.Request.Account = pods.Account{Name: "cart"} }, "refused now: service account shop/cart does not exist: *"},
		"annotation is wrong": {func(p *drift.Pod) { p.Denial = decision.Invalid("it is wrong") }, "refused now: it is wrong"},
		"not for people to see": {func(p *drift.Pod) {
			p.Enabled, p.Request.Account = false, pods.Account{Name: "cart"}
			p.Request.Pod = pods.Requested(p.Request)
		}, "current"},
	} {
		t.Run(name, func(t *testing.T) {
			p := store(t)
			test.change(&p)
			got := decide(t, p)
			if start, end, any := strings.Cut(test.want, "*"); got.String() != test.want && !(any && strings.HasPrefix(got.String(), start) && strings.HasSuffix(got.String(), end)) {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if got.Drifted() == strings.HasPrefix(test.want, "current") {
				t.Errorf("drifted is %v", got.Drifted())
			}
		})
	}
}

// A pod that got no identity when it was made lacks the volume, and no element of it is shown.
func TestPodThatWasMadeTooEarly(t *testing.T) {
	p := store(t)
	p.Request.Pod = pods.Requested(p.Request)
	got := decide(t, p)
	if got.State != drift.Stale || got.Field != "spec.containers[main].env[AWS_ROLE_ARN]" || got.Has != "" {
		t.Errorf("%+v", got)
	}
}

func TestDecideAccountsOfWindows(t *testing.T) {
	const field = "spec.securityContext.windowsOptions.gmsaCredentialSpec"
	was := gmsa.SpecOf(map[string]any{"CmsPlugins": []any{"ActiveDirectory"}, "Sid": "a"})
	now := gmsa.SpecOf(map[string]any{"CmsPlugins": []any{"ActiveDirectory"}, "Sid": "b"})
	for name, test := range map[string]struct {
		spec     gmsa.Spec
		contents *string
		allowed  bool
		state    string
		field    string
	}{
		"unchanged":      {was, &was.Contents, true, drift.Current, ""},
		"other spelling": {was, ptr.To(`{"Sid": "a", "CmsPlugins": ["ActiveDirectory"]}`), true, drift.Current, ""},
		"changed":        {now, &was.Contents, true, drift.Stale, field},
		"not filled in":  {now, nil, true, drift.Stale, field},
		"right gone":     {now, &was.Contents, false, drift.Refused, ""},
		"object gone":    {gmsa.Spec{}, &was.Contents, true, drift.Missing, ""},
		"unusable":       {gmsa.SpecOf(nil), &was.Contents, true, drift.Refused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: "web", Containers: []corev1.Container{{Name: "main"}}}}
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: ptr.To("webapp"), GMSACredentialSpec: test.contents}}
			got := decide(t, drift.Pod{
				Request: pods.Request{Namespace: "shop", Pod: pod, Adapters: targets.For},
				Specs:   map[string]gmsa.Spec{"webapp": test.spec}, Uses: map[string]authority.Answer{"webapp": {Allowed: test.allowed}},
			})
			if got.State != test.state || got.Field != test.field {
				t.Errorf("%+v, want %s %s", got, test.state, test.field)
			}
			if strings.Contains(got.Has+got.Wants, "ActiveDirectory") {
				t.Errorf("the contents are shown: %+v", got)
			}
		})
	}
}

func TestRuns(t *testing.T) {
	for name, test := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"running":    {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, true},
		"waiting":    {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, true},
		"done":       {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, false},
		"failed":     {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, false},
		"going":      {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, false},
		"kubelet's":  {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, false},
		"with token": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationMountPath: "/x"}}}, true},
	} {
		if got := drift.Runs(&test.pod); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
