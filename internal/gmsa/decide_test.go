package gmsa_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/gmsa"
)

const contents = `{"CmsPlugins":["ActiveDirectory"],"DomainJoinConfig":{"MachineAccountName":"webapp1"}}`

func named(name, contents string) *corev1.SecurityContext {
	return &corev1.SecurityContext{WindowsOptions: options(name, contents)}
}

func options(name, contents string) *corev1.WindowsSecurityContextOptions {
	o := &corev1.WindowsSecurityContextOptions{}
	if name != "" {
		o.GMSACredentialSpecName = &name
	}
	if contents != "" {
		o.GMSACredentialSpec = &contents
	}
	return o
}

// everywhere names an object in each place that a pod has for it.
func everywhere() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name":           "a-pod",
			"two.container.alpha.windows.kubernetes.io/gmsa-credential-spec-name": "a-two",
			"none.container.alpha.windows.kubernetes.io/gmsa-credential-spec":     "",
			"example.com/other": "x",
		}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{WindowsOptions: options("pod", "")},
			InitContainers:  []corev1.Container{{Name: "init", SecurityContext: named("init", "")}},
			Containers:      []corev1.Container{{Name: "one"}, {Name: "two", SecurityContext: named("two", "{}")}, {Name: "three", SecurityContext: &corev1.SecurityContext{}}},
			EphemeralContainers: []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", SecurityContext: named("debug", "")}},
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "bare"}},
			},
		},
	}
}

func TestReferences(t *testing.T) {
	type place struct{ Container, Name, Contents, NamePath string }
	places := func(references []gmsa.Reference) []place {
		var found []place
		for _, r := range references {
			found = append(found, place{r.Container, r.Name, r.Contents, r.NamePath})
		}
		return found
	}
	fields := []place{
		{"", "pod", "", "spec.securityContext.windowsOptions.gmsaCredentialSpecName"},
		{"init", "init", "", "spec.initContainers[0].securityContext.windowsOptions.gmsaCredentialSpecName"},
		{"two", "two", "{}", "spec.containers[1].securityContext.windowsOptions.gmsaCredentialSpecName"},
		{"debug", "debug", "", "spec.ephemeralContainers[0].securityContext.windowsOptions.gmsaCredentialSpecName"},
	}
	if diff := cmp.Diff(fields, places(gmsa.References(everywhere(), false))); diff != "" {
		t.Errorf("of fields (-want +got):\n%s", diff)
	}
	all := append(fields[:len(fields):len(fields)],
		place{"", "a-pod", "", "metadata.annotations[pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name]"},
		place{"two", "a-two", "", "metadata.annotations[two.container.alpha.windows.kubernetes.io/gmsa-credential-spec-name]"})
	if diff := cmp.Diff(all, places(gmsa.References(everywhere(), true))); diff != "" {
		t.Errorf("with annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fields[3:], places(gmsa.Of(gmsa.References(everywhere(), true), []string{"debug"}))); diff != "" {
		t.Errorf("of an ephemeral container that is added (-want +got):\n%s", diff)
	}
	if got := gmsa.Of(gmsa.References(everywhere(), true), []string{"two"}); got != nil {
		t.Errorf("a container that exists was taken for one that is added: %v", got)
	}
	if diff := cmp.Diff(append(fields[3:4:4], fields[0]), places(gmsa.Run(gmsa.References(everywhere(), false), []string{"debug", "bare"}))); diff != "" {
		t.Errorf("what they run as (-want +got):\n%s", diff)
	}
	waiting := everywhere()
	waiting.Annotations["bare.container.alpha.windows.kubernetes.io/gmsa-credential-spec-name"] = "a-bare"
	if got := places(gmsa.Run(gmsa.References(waiting, true), []string{"bare"})); len(got) != 1 || got[0].Name != "a-bare" {
		t.Errorf("a container that an annotation waits for runs as %v", got)
	}
}

func TestExpand(t *testing.T) {
	specs := map[string]gmsa.Spec{}
	for _, name := range []string{"pod", "init", "two", "debug", "a-pod", "a-two"} {
		specs[name] = gmsa.Spec{Exists: true, Contents: `{"of":"` + name + `"}`}
	}
	add := func(path, name string) decision.Operation {
		return decision.Operation{Op: "add", Path: path, Value: `{"of":"` + name + `"}`}
	}
	want := []decision.Operation{
		add("/spec/securityContext/windowsOptions/gmsaCredentialSpec", "pod"),
		add("/spec/initContainers/0/securityContext/windowsOptions/gmsaCredentialSpec", "init"),
		add("/spec/ephemeralContainers/0/securityContext/windowsOptions/gmsaCredentialSpec", "debug"),
		add("/metadata/annotations/pod.alpha.windows.kubernetes.io~1gmsa-credential-spec", "a-pod"),
		add("/metadata/annotations/two.container.alpha.windows.kubernetes.io~1gmsa-credential-spec", "a-two"),
	}
	uses := map[string]authority.Answer{}
	for name := range specs {
		uses[name] = authority.Answer{Allowed: true}
	}
	request := gmsa.Request{ServiceAccount: "web", References: gmsa.References(everywhere(), true), Specs: specs, Uses: uses}
	result := gmsa.Expand(request)
	if diff := cmp.Diff(decision.Result{Patch: want}, result); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Contents are for those alone who may use the object.
	uses["init"], uses["debug"] = authority.Answer{}, authority.Answer{}
	result = gmsa.Expand(request)
	if d := result.Denial; d == nil || d.Code != http.StatusForbidden || d.Field != "spec.initContainers[0].securityContext.windowsOptions.gmsaCredentialSpecName" || len(d.Others) != 1 || len(result.Patch) > 0 {
		t.Errorf("without the right: %+v", result)
	}
}

func TestAuthorize(t *testing.T) {
	allowed := map[string]authority.Answer{"spec1": {Allowed: true}, "gone": {Allowed: true}, "broken": {Allowed: true}}
	specs := map[string]gmsa.Spec{"spec1": {Exists: true, Contents: contents}, "broken": {Exists: true, Fault: "it has no credspec"}}
	request := func(name, given string) gmsa.Request {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one", SecurityContext: named(name, given)}}}}
		return gmsa.Request{Namespace: "ns", ServiceAccount: "sa", References: gmsa.References(pod, true), Specs: specs, Uses: allowed}
	}
	user := func(r gmsa.Request, uses map[string]authority.Answer) gmsa.Request {
		r.User, r.UserReferences, r.UserUses = "jane", r.References, uses
		return r
	}
	with := func(r gmsa.Request, change func(*gmsa.Request)) gmsa.Request {
		change(&r)
		return r
	}
	const secret = "do-not-show"
	for _, test := range []struct {
		name    string
		request gmsa.Request
		code    int32
		says    []string
	}{
		{"filled in", request("spec1", contents), 0, nil},
		{"other order and white space", request("spec1", `{ "DomainJoinConfig": {"MachineAccountName": "webapp1"}, "CmsPlugins": ["ActiveDirectory"] }`), 0, nil},
		{"the user may, too", user(request("spec1", contents), allowed), 0, nil},
		{"contents alone", request("", contents), http.StatusUnprocessableEntity, []string{"spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec is set", "gmsaCredentialSpecName is not"}},
		{"no right", with(request("spec1", contents), func(r *gmsa.Request) { r.Uses = map[string]authority.Answer{"spec1": {Detail: "no opinion"}} }),
			http.StatusForbidden, []string{`service account "sa" of namespace "ns"`, `"spec1"`, "(no opinion)", "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpecName"}},
		{"no right, and other contents", with(request("spec1", `{"x":"`+secret+`"}`), func(r *gmsa.Request) { r.Uses = nil }), http.StatusForbidden, nil},
		{"no service account", with(request("spec1", contents), func(r *gmsa.Request) { r.ServiceAccount = "" }), http.StatusForbidden, []string{"without a service account"}},
		{"the user may not", user(request("spec1", contents), nil), http.StatusForbidden, []string{`user "jane" may not use`, `"spec1"`}},
		{"no object", request("gone", contents), http.StatusUnprocessableEntity, []string{`no GMSACredentialSpec "gone"`, "spec.containers[0]"}},
		{"an object of no use", request("broken", contents), http.StatusUnprocessableEntity, []string{`"broken" can't be used`, "it has no credspec"}},
		{"not filled in", request("spec1", ""), http.StatusUnprocessableEntity, []string{"was not filled in", "would run without it"}},
		{"other contents", request("spec1", `{"other":"x"}`), http.StatusUnprocessableEntity, []string{`{"other":"x"}`, contents}},
		{"a key twice", request("spec1", `{"CmsPlugins":["evil"],`+contents[1:]), http.StatusUnprocessableEntity, []string{`the key "CmsPlugins" twice`, "evil"}},
		{"another case", request("spec1", strings.Replace(contents, "CmsPlugins", "cmsPlugins", 1)), http.StatusUnprocessableEntity, []string{"is not what"}},
		{"something behind", request("spec1", contents+" {}"), http.StatusUnprocessableEntity, []string{"data after the end"}},
		{"no object but a list", request("spec1", `["a"]`), http.StatusUnprocessableEntity, []string{"is not a JSON object"}},
		{"no JSON", request("spec1", "not json"), http.StatusUnprocessableEntity, []string{"is not JSON"}},
		{"not all of it", request("spec1", contents[:20]), http.StatusUnprocessableEntity, []string{"is not JSON: unexpected EOF"}},
		{"too much", request("spec1", `{"a":"`+strings.Repeat("x", gmsa.MaxContents)+`"}`), http.StatusUnprocessableEntity, []string{"bytes"}},
		{"too deep", request("spec1", `{"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+"}"), http.StatusUnprocessableEntity, []string{"nested more than 32 levels"}},
		{"no UTF-8", request("spec1", "{\"a\":\"\xff\"}"), http.StatusUnprocessableEntity, []string{"not UTF-8"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			denial := gmsa.Authorize(test.request).Denial
			if test.code == 0 {
				if denial != nil {
					t.Fatalf("refused: %+v", denial)
				}
				return
			}
			if denial == nil || denial.Code != test.code {
				t.Fatalf("got %+v, want code %d", denial, test.code)
			}
			for _, want := range test.says {
				if !strings.Contains(denial.Message, want) {
					t.Errorf("the message does not have %q:\n%s", want, denial.Message)
				}
			}
			if denial.Code == http.StatusForbidden && (strings.Contains(denial.Message, secret) || strings.Contains(denial.Message, "ActiveDirectory")) {
				t.Errorf("contents shown to a user who may not use them: %s", denial.Message)
			}
		})
	}
}

// All reasons are known at once, but for what is in an object that may not be used.
func TestAuthorizeHasAllReasons(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "a", SecurityContext: named("", "{}")}, {Name: "b", SecurityContext: named("other", "{}")}, {Name: "c", SecurityContext: named("mine", "{}")}, {Name: "d", SecurityContext: named("gone", contents)},
	}}}
	denial := gmsa.Authorize(gmsa.Request{Namespace: "ns", ServiceAccount: "sa", References: gmsa.References(pod, false),
		Specs: map[string]gmsa.Spec{"other": {Exists: true, Contents: contents}, "mine": {Exists: true, Contents: contents}},
		Uses:  map[string]authority.Answer{"mine": {Allowed: true}, "gone": {Allowed: true}},
	}).Denial
	if denial == nil {
		t.Fatal("admitted")
	}
	var got []string
	for _, d := range append([]*decision.Denial{denial}, denial.Others...) {
		got = append(got, fmt.Sprint(d.Code, " ", d.Field))
	}
	const options = "].securityContext.windowsOptions.gmsaCredentialSpec"
	want := []string{"422 spec.containers[0" + options, "403 spec.containers[1" + options + "Name", "422 spec.containers[2" + options, "422 spec.containers[3" + options + "Name"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	pod := func(name string) []gmsa.Reference {
		return gmsa.References(&corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{WindowsOptions: options(name, "")}}}, false)
	}
	for _, wrong := range []string{"a/b", "..", "../x", strings.Repeat("a", 254), "Webapp", "a b", "a\x00", "x/../../secrets"} {
		if names, denial := gmsa.Names(pod(wrong)); denial == nil || denial.Code != http.StatusUnprocessableEntity || names != nil {
			t.Errorf("%.20q: names %v, denial %+v", wrong, names, denial)
		}
	}
	names, denial := gmsa.Names(append(pod("b"), append(pod("a"), pod("b")...)...))
	if denial != nil || !cmp.Equal(names, []string{"b", "a"}) {
		t.Errorf("names %v, denial %v", names, denial)
	}
}

func TestNamesAreBounded(t *testing.T) {
	var references []gmsa.Reference
	for i := range gmsa.MaxNames {
		references = append(references, gmsa.Reference{Name: fmt.Sprintf("s%d", i)}, gmsa.Reference{Name: fmt.Sprintf("s%d", i)})
	}
	if names, denial := gmsa.Names(references); denial != nil || len(names) != gmsa.MaxNames {
		t.Errorf("%d names, %+v", len(names), denial)
	}
	if _, denial := gmsa.Names(append(references, gmsa.Reference{Name: "more", NamePath: "spec.x"})); denial == nil || denial.Code != http.StatusUnprocessableEntity || !strings.Contains(denial.Message, "28 different") {
		t.Errorf("one more: %+v", denial)
	}
}

func TestUnchanged(t *testing.T) {
	const pod, container = "pod.alpha.windows.kubernetes.io/gmsa-credential-spec", "c.container.alpha.windows.kubernetes.io/gmsa-credential-spec-name"
	for _, test := range []struct {
		name     string
		old, now map[string]string
		says     string
	}{
		{"others", map[string]string{"a": "1", pod: "x"}, map[string]string{"a": "2", pod: "x"}, ""},
		{"empty for absent", map[string]string{pod: ""}, nil, ""},
		{"changed", map[string]string{pod: "x"}, map[string]string{pod: "y"}, "[" + pod + "] of a pod that exists can't be changed"},
		{"removed", map[string]string{container: "x"}, nil, "[" + container + "] of a pod that exists can't be removed"},
		{"added", nil, map[string]string{container: "x"}, "can't be added"},
	} {
		denial := gmsa.Unchanged(test.old, test.now)
		if test.says == "" != (denial == nil) || denial != nil && (denial.Code != http.StatusBadRequest || !strings.Contains(denial.Message, test.says)) {
			t.Errorf("%s: %+v, want %q", test.name, denial, test.says)
		}
	}
}

func TestHostname(t *testing.T) {
	references := gmsa.References(everywhere(), false)
	if got := gmsa.Hostname(everywhere(), references, "w-1"); !cmp.Equal(got, []decision.Operation{{Op: "add", Path: "/spec/hostname", Value: "w-1"}}) {
		t.Errorf("got %v", got)
	}
	own := everywhere()
	own.Spec.Hostname = "mine"
	host := everywhere()
	host.Spec.HostNetwork = true
	for name, got := range map[string][]decision.Operation{
		"a name of its own": gmsa.Hostname(own, references, "w-1"), "the host's": gmsa.Hostname(host, references, "w-1"),
		"not asked for": gmsa.Hostname(everywhere(), references, ""), "no account": gmsa.Hostname(everywhere(), nil, "w-1"),
	} {
		if got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
