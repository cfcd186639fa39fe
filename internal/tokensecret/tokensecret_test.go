package tokensecret_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/test/testkit"
)

const account = `{"apiVersion":"v1","kind":"ServiceAccount","name":"foo","namespace":"garden-local","uid":"54d09554-6a68-4f46-a23a-e3592385d820"}`

const shoot = `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","name":"foo","namespace":"garden-local","uid":"54d09554-6a68-4f46-a23a-e3592385d820"}`

func TestParse(t *testing.T) {
	object := func(name, namespace, context string) metav1.Object {
		annotations := map[string]string{v1alpha1.AnnotationName: name, v1alpha1.AnnotationNamespace: namespace}
		if context != "" {
			annotations[v1alpha1.AnnotationContextObject] = context
		}
		return &metav1.ObjectMeta{Annotations: annotations}
	}
	got := testkit.Need(tokensecret.Parse(object("banana-testing", "garden-local", account)))(t)
	want := tokensecret.Request{
		Identity: types.NamespacedName{Namespace: "garden-local", Name: "banana-testing"},
		Context: &v1alpha1.ContextObject{
			APIVersion: "v1", Kind: "ServiceAccount", Name: "foo", Namespace: "garden-local", UID: "54d09554-6a68-4f46-a23a-e3592385d820",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if text := tokensecret.FormatContext(*got.Context); text != account {
		t.Errorf("written as %s, want %s", text, account)
	}
	if got, err := tokensecret.Parse(object("banana-testing", "garden-local", shoot)); err != nil || got.Context.Kind != "Shoot" || tokensecret.FormatContext(*got.Context) != shoot {
		t.Errorf("the sample's: %+v, %v", got, err)
	}
	for name, test := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"nothing":          {&metav1.ObjectMeta{}, v1alpha1.AnnotationName + ": is missing"},
		"no namespace":     {object("a", "", ""), v1alpha1.AnnotationNamespace + ": is missing"},
		"no name at all":   {object("A_b", "ns", ""), v1alpha1.AnnotationName + `: "A_b" is not a valid name`},
		"no such place":    {object("a", "n.s", ""), v1alpha1.AnnotationNamespace + `: "n.s" is not a valid name`},
		"path":             {object("../x", "ns", ""), v1alpha1.AnnotationName},
		"context, no JSON": {object("a", "ns", "shoot"), v1alpha1.AnnotationContextObject + ": is not a JSON object"},
	} {
		_, err := tokensecret.Parse(test.object)
		if _, typed := errors.AsType[*tokensecret.AnnotationError](err); !typed || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestParseBinding(t *testing.T) {
	object := func(binding string, more map[string]string) metav1.Object {
		annotations := map[string]string{v1alpha1.AnnotationBinding: binding, v1alpha1.AnnotationNamespace: "garden-local"}
		maps.Copy(annotations, more)
		return &metav1.ObjectMeta{Annotations: annotations}
	}
	got, err := tokensecret.Parse(object("infra", nil))
	if want := (tokensecret.Request{Binding: types.NamespacedName{Namespace: "garden-local", Name: "infra"}}); err != nil || got != want {
		t.Errorf("request %+v, %v, want %+v", got, err, want)
	}
	for name, test := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"empty":             {object("", nil), v1alpha1.AnnotationBinding + ": is missing"},
		"a path":            {object("a/b", nil), v1alpha1.AnnotationBinding + `: "a/b" is not a valid name of a CredentialsBinding`},
		"beside a name":     {object("infra", map[string]string{v1alpha1.AnnotationName: "a"}), v1alpha1.AnnotationBinding + ": must not be set beside"},
		"an empty name":     {object("infra", map[string]string{v1alpha1.AnnotationName: ""}), v1alpha1.AnnotationBinding + ": must not be set beside"},
		"with an account":   {object("infra", map[string]string{v1alpha1.AnnotationContextObject: account}), v1alpha1.AnnotationContextObject + ": must not be set beside"},
		"without namespace": {object("infra", map[string]string{v1alpha1.AnnotationNamespace: ""}), v1alpha1.AnnotationNamespace + ": is missing"},
	} {
		_, err := tokensecret.Parse(test.object)
		if _, typed := errors.AsType[*tokensecret.AnnotationError](err); !typed || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestParseContextRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "has no apiVersion",
		`{"apiVersion":"v1","kind":"ServiceAccount","name":"a"}`:                          "has no uid",
		`{"apiVersion":"v1","kind":"ServiceAccount","kind":"Shoot","name":"a","uid":"u"}`: "duplicate field",
		`{"apiVersion":"v1","Kind":"ServiceAccount","name":"a","uid":"u"}`:                "unknown field",
		`{"apiVersion":"v1","kind":"K","name":"a","uid":"u","more":1}`:                    "unknown field",
		`{"apiVersion":"v1","kind":"K","name":"a","uid":"u"} {}`:                          "is not JSON",
		`{"apiVersion":"a/b/c","kind":"K","name":"a","uid":"u"}`:                          "apiVersion",
		`[]`:   "is not a JSON object",
		`null`: "is not a JSON object",
		`{"apiVersion":"v1","kind":"K","name":"` + strings.Repeat("a", 2048) + `","uid":"u"}`: "bytes long",
	} {
		if object, err := tokensecret.ParseContext(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseContext(%.80s) = %v, %v, want an error with %q", text, object, err, want)
		}
	}
}

func TestConfig(t *testing.T) {
	got, err := tokensecret.Config(&runtime.RawExtension{Raw: []byte(`{"kind":"Config","apiVersion":"a/v1","iamRoleARN":"arn:x","nested":{"b":1,"a":"yes"}}`)})
	testkit.Must(t, err)
	const want = "apiVersion: a/v1\niamRoleARN: arn:x\nkind: Config\nnested:\n  a: \"yes\"\n  b: 1\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	back, err := tokensecret.ProviderConfig(got)
	if err != nil || string(back) != `{"apiVersion":"a/v1","iamRoleARN":"arn:x","kind":"Config","nested":{"a":"yes","b":1}}` {
		t.Errorf("read back as %s, %v", back, err)
	}
	for _, none := range []*runtime.RawExtension{nil, {}, {Raw: []byte("null")}} {
		if got, err := tokensecret.Config(none); got != nil || err != nil {
			t.Errorf("no providerConfig gave %q, %v", got, err)
		}
	}
	if _, err := tokensecret.ProviderConfig([]byte("a: 1\na: 2\n")); err == nil {
		t.Error("a key that stands twice was accepted")
	}
}

func TestNameFor(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("a", 253)
	for _, pair := range [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"a.b", "c"}, {long, "x"}, {long, "y"}, {"x", long}, {"credence", strings.Repeat("b.", 60) + "c"}} {
		name := tokensecret.NameFor(pair[0], pair[1])
		if other, twice := seen[name]; twice || len(name) > 253 || !strings.HasPrefix(name, tokensecret.NamePrefix) {
			t.Errorf("NameFor(%.20s, %.20s) = %s (%d bytes), as for %s", pair[0], pair[1], name, len(name), other)
		}
		seen[name] = pair[0] + "/" + pair[1]
	}
	if got := tokensecret.NameFor("web", "banana"); got != "credence-token-web-banana-ab11c6b2e6" {
		t.Errorf("NameFor(web, banana) = %s: names of Secrets that exist must not change", got)
	}
}

func TestParseIdentities(t *testing.T) {
	got, err := tokensecret.ParseIdentities(" b, a.c ,d")
	if diff := cmp.Diff([]string{"b", "a.c", "d"}, got); err != nil || diff != "" {
		t.Errorf("ParseIdentities: %v (-want +got):\n%s", err, diff)
	}
	if got, err := tokensecret.ParseIdentities("  "); got != nil || err != nil {
		t.Errorf("an empty annotation gave %v, %v", got, err)
	}
	for annotation, want := range map[string]string{
		"a,,b": "empty name", "a,": "empty name", "a,b,a": "twice", "A": "not a valid name of a WorkloadIdentity", "a b": "not a valid name", "../a": "not a valid name",
		strings.Repeat("a,", 16) + "a": "lists 17 identities",
	} {
		if _, err := tokensecret.ParseIdentities(annotation); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseIdentities(%q) = %v, want %q", annotation, err, want)
		}
	}
}

// Whatever is read as a context is one that the API takes, and is written so that it reads the same again.
func FuzzContext(f *testing.F) {
	f.Add(shoot)
	f.Add(`{"apiVersion":"v1","kind":"ServiceAccount","name":"a","namespace":"b","uid":"c"}`)
	f.Add(`{"apiVersion":"v1","kind":"\u0053erviceAccount","name":"a","uid":"c"}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, text string) {
		object, err := tokensecret.ParseContext(text)
		if err != nil {
			return
		}
		again, err := tokensecret.ParseContext(tokensecret.FormatContext(*object))
		if err != nil || *again != *object {
			t.Fatalf("%q reads as %+v, and then as %+v, %v", text, object, again, err)
		}
	})
}

func FuzzIdentities(f *testing.F) {
	for _, seed := range []string{"a", "a,b", " a , b ", ",", "a,,b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		names, err := tokensecret.ParseIdentities(annotation)
		if err != nil {
			return
		}
		again, err := tokensecret.ParseIdentities(strings.Join(names, ","))
		if diff := cmp.Diff(names, again); err != nil || diff != "" {
			t.Fatalf("%q: %v %s", annotation, err, diff)
		}
	})
}
