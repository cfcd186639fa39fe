package secrets_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/admissiontest"
	"github.com/credence-id/credence/internal/admission/secrets"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
)

const (
	agent   = "system:serviceaccount:credence-system:credence-agent"
	account = `{"apiVersion":"v1","kind":"ServiceAccount","name":"app","namespace":"orchard","uid":"u1"}`
)

// harbour needs one key, and another where its providerConfig has a tide. It takes no empty providerConfig; quay does.
type harbour struct{ name string }

func (h harbour) Type() string        { return h.name }
func (harbour) Limits() target.Limits { return target.Limits{} }
func (h harbour) Parse(providerConfig []byte, path *field.Path) (target.Config, field.ErrorList) {
	var c moored
	if len(providerConfig) == 0 && h.name == "quay" {
		return c, nil
	}
	if err := json.Unmarshal(providerConfig, &c); err != nil || c.Berth == "" {
		return nil, field.ErrorList{field.Required(path.Child("berth"), "name a berth")}
	}
	return c, nil
}

type moored struct{ Berth, Tide string }

func (c moored) Injection(place target.Place) target.Injection {
	keys := []target.Key{{Name: "chart", Content: "berth=" + c.Berth + "\nfile=" + place.Token()}}
	if c.Tide != "" {
		keys = append(keys, target.Key{Name: "tide", Content: c.Tide})
	}
	return target.Injection{Keys: keys}
}
func (moored) Account() []target.Fixed { return nil }
func (moored) Audiences() []string     { return nil }

func adapters(targetType string) target.Adapter {
	if targetType == "harbour" || targetType == "quay" {
		return harbour{targetType}
	}
	return targets.For(targetType)
}

func secret(change func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{"config": []byte("berth: \"7\"\n"), "token": []byte("t"), "mine": []byte("kept")}}
	s.Name, s.Namespace = "cloud", "orchard"
	s.Labels = map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor, v1alpha1.LabelProvider: "harbour"}
	s.Annotations = map[string]string{v1alpha1.AnnotationName: "banana", v1alpha1.AnnotationNamespace: "orchard"}
	if change != nil {
		change(s)
	}
	return s
}

func annotated(annotation, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Annotations[annotation] = value }
}

func config(text string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data["config"] = []byte(text) }
}

func both(changes ...func(*corev1.Secret)) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		for _, change := range changes {
			change(s)
		}
	}
}

// written decides, applies the patch, and sees that a second time gives none.
func written(t *testing.T, r secrets.Request) (map[string][]byte, secrets.Result) {
	t.Helper()
	r.Adapters, r.Agent = adapters, agent
	if r.User.Name == "" {
		r.User = jane
	}
	before := r.Secret.DeepCopy()
	result := secrets.Decide(r)
	if diff := cmp.Diff(before, r.Secret); diff != "" {
		t.Errorf("the Secret that was passed in was changed:\n%s", diff)
	}
	if result.Denial != nil {
		return nil, result
	}
	after := admissiontest.Patched(t, r.Secret, result.Patch)
	r.Secret = after
	if second := secrets.Decide(r); second.Denial != nil || len(second.Patch) > 0 {
		t.Errorf("on the patched Secret: %+v, want nothing", second)
	}
	return after.Data, result
}

func ofImages(s *corev1.Secret) { s.Type = corev1.SecretTypeDockerConfigJson }

// forImages has a Secret hold passwords of registries.
func forImages(s *corev1.Secret) {
	s.Type, s.Annotations[v1alpha1.AnnotationRegistries] = corev1.SecretTypeDockerConfigJson, "registry.example.com"
}

func TestKeys(t *testing.T) {
	const chart = "berth=7\nfile=/var/run/workload-identity/harbour/token"
	plain := map[string]string{"config": "berth: \"7\"\n", "token": "t", "mine": "kept", "chart": chart}
	with := func(changes map[string]string) map[string]string {
		data := maps.Clone(plain)
		maps.Copy(data, changes)
		return data
	}
	injected := func(tide string) *corev1.Secret {
		return secret(both(config("berth: \"7\"\ntide: "+tide+"\n"), func(s *corev1.Secret) {
			s.Data["chart"], s.Data["tide"] = []byte(chart), []byte(tide)
		}))
	}
	for name, test := range map[string]struct {
		secret, old *corev1.Secret
		user        string
		want        map[string]string
	}{
		"created":             {secret: secret(nil), want: plain},
		"another's bytes":     {secret: secret(func(s *corev1.Secret) { s.Data["chart"] = []byte(chart + "\n") }), want: plain},
		"no data":             {secret: secret(func(s *corev1.Secret) { s.Labels[v1alpha1.LabelProvider], s.Data = "quay", nil }), want: map[string]string{"chart": "berth=\nfile=/var/run/workload-identity/quay/token"}},
		"no config yet":       {secret: secret(func(s *corev1.Secret) { s.Data = nil }), want: map[string]string{}},
		"config gone":         {secret: secret(func(s *corev1.Secret) { delete(s.Data, "config"); s.Data["chart"] = []byte("c") }), old: injected("low"), want: map[string]string{"token": "t", "mine": "kept", "chart": "c"}},
		"config taken out":    {secret: func() *corev1.Secret { s := injected("low"); delete(s.Data, "config"); return s }(), old: injected("low"), want: map[string]string{"token": "t", "mine": "kept"}},
		"for images":          {secret: secret(both(forImages, func(s *corev1.Secret) { s.Labels[v1alpha1.LabelProvider], s.Data = "generic", nil })), want: map[string]string{".dockerconfigjson": "{}"}},
		"for images, keys":    {secret: secret(both(forImages, func(s *corev1.Secret) { s.Labels[v1alpha1.LabelProvider], s.Data = "quay", nil })), want: map[string]string{".dockerconfigjson": "{}", "chart": "berth=\nfile=/var/run/workload-identity/quay/token"}},
		"for images, filled":  {secret: secret(both(forImages, func(s *corev1.Secret) { s.Data[".dockerconfigjson"] = []byte("{ }") })), want: with(map[string]string{".dockerconfigjson": "{ }"})},
		"images, no registry": {secret: secret(both(ofImages, func(s *corev1.Secret) { s.Data[".dockerconfigjson"] = []byte("{ }") })), want: with(map[string]string{".dockerconfigjson": "{ }"})},
		"no images, registry": {secret: secret(annotated(v1alpha1.AnnotationRegistries, "")), want: plain},
		"no label":            {secret: secret(func(s *corev1.Secret) { s.Labels = nil; s.Annotations = nil }), old: secret(nil), want: map[string]string{"config": "berth: \"7\"\n", "token": "t", "mine": "kept"}},
		"no adapter":          {secret: secret(func(s *corev1.Secret) { s.Labels[v1alpha1.LabelProvider] = "unheard-of" }), want: map[string]string{"config": "berth: \"7\"\n", "token": "t", "mine": "kept"}},
		"a key more":          {secret: secret(config("berth: \"7\"\ntide: high\n")), old: secret(nil), want: with(map[string]string{"config": "berth: \"7\"\ntide: high\n", "tide": "high"})},
		"a key less":          {secret: func() *corev1.Secret { s := injected("low"); config("berth: \"7\"\n")(s); return s }(), old: injected("low"), want: plain},
		"an unknown key":      {secret: func() *corev1.Secret { s := injected("low"); config("berth: \"7\"\n")(s); return s }(), want: with(map[string]string{"tide": "low"})},
		"another target":      {secret: func() *corev1.Secret { s := injected("low"); s.Labels[v1alpha1.LabelProvider] = "generic"; return s }(), old: injected("low"), want: map[string]string{"config": "berth: \"7\"\ntide: low\n", "token": "t", "mine": "kept"}},
		"a service account's": {secret: secret(annotated(v1alpha1.AnnotationContextObject, account)), user: agent, want: with(map[string]string{"chart": "berth=7\nfile=/var/run/secrets/workload-identity/banana/token"})},
	} {
		t.Run(name, func(t *testing.T) {
			data, result := written(t, secrets.Request{Secret: test.secret, Old: test.old, User: authority.Subject{Name: test.user}})
			if result.Denial != nil {
				t.Fatalf("refused: %s", result.Denial.Message)
			}
			got := map[string]string{}
			for key, content := range data {
				got[key] = string(content)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	context := annotated(v1alpha1.AnnotationContextObject, account)
	for name, test := range map[string]struct {
		secret, old *corev1.Secret
		code        int32
		message     string
	}{
		"no name":                   {secret(annotated(v1alpha1.AnnotationName, "")), nil, 422, v1alpha1.AnnotationName + ": is missing"},
		"no name of a namespace":    {secret(annotated(v1alpha1.AnnotationNamespace, "a.b")), nil, 422, v1alpha1.AnnotationNamespace},
		"context that is not JSON":  {secret(annotated(v1alpha1.AnnotationContextObject, "app")), nil, 422, "is not a JSON object"},
		"context that none has":     {secret(annotated(v1alpha1.AnnotationContextObject, `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","name":"foo","uid":"u"}`)), nil, 403, "names a core.gardener.cloud/v1beta1 Shoot"},
		"context of an account":     {secret(context), nil, 403, "only the agent"},
		"context of an account set": {secret(context), secret(nil), 403, "only the agent"},
		"context kept, name not":    {secret(both(context, annotated(v1alpha1.AnnotationName, "cherry"))), secret(context), 403, "only the agent"},
		"label added to a context":  {secret(context), secret(both(context, func(s *corev1.Secret) { s.Labels = nil })), 403, "only the agent"},
		"the agent's name":          {secret(func(s *corev1.Secret) { s.Name = "credence-token-app-banana-53ef9d4811" }), nil, 403, "give it another name"},
		"config of another target":  {secret(config("tide: high")), nil, 422, "data.config.berth"},
		"config that is not YAML":   {secret(config("\t{")), nil, 422, "read config as YAML"},
		"config with a key twice":   {secret(config("berth: a\nberth: b\n")), nil, 422, "read config as YAML"},
		"config without an end":     {secret(config(strings.Repeat("- ", 1<<17))), nil, 422, "262144 bytes long, at most 131072"},
		"config made worse":         {secret(config("tide: low")), secret(config("tide: high")), 422, "data.config.berth"},
		"no registry":               {secret(both(ofImages, annotated(v1alpha1.AnnotationRegistries, ""))), nil, 422, `Secret "cloud": annotation identity.credence.dev/registries: names no registry`},
		"a registry without a name": {secret(both(ofImages, annotated(v1alpha1.AnnotationRegistries, "a.example, "))), secret(forImages), 422, "such as registry.example.com/team, separated by commas"},
		"registries forgotten":      {secret(ofImages), nil, 422, v1alpha1.AnnotationRegistries},
	} {
		t.Run(name, func(t *testing.T) {
			_, result := written(t, secrets.Request{Secret: test.secret, Old: test.old})
			if result.Denial == nil {
				t.Fatalf("admitted: %+v", result)
			}
			if result.Denial.Code != test.code || !strings.Contains(result.Denial.Message, test.message) {
				t.Errorf("%d %s, want %d and %q", result.Denial.Code, result.Denial.Message, test.code, test.message)
			}
		})
	}
}

// A change of metadata of a faulty Secret, or of one that the agent made, must be possible.
func TestWhatWasSoBeforeIsNotRefused(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"annotations":           annotated(v1alpha1.AnnotationContextObject, "{"),
		"config":                config("tide: high"),
		"a service account's":   annotated(v1alpha1.AnnotationContextObject, account),
		"registries":            both(ofImages, annotated(v1alpha1.AnnotationRegistries, "")),
		"name kept for another": func(s *corev1.Secret) { s.Name = "credence-token-x" },
	} {
		t.Run(name, func(t *testing.T) {
			old := secret(both(change, func(s *corev1.Secret) { s.Finalizers = []string{"example.com/f"} }))
			if _, result := written(t, secrets.Request{Secret: secret(change), Old: old}); result.Denial != nil {
				t.Errorf("refused: %s", result.Denial.Message)
			}
		})
	}
}

func TestImmutable(t *testing.T) {
	_, result := written(t, secrets.Request{Secret: secret(func(s *corev1.Secret) { s.Immutable = ptr.To(true) })})
	if result.Denial != nil || len(result.Warnings) != 1 {
		t.Errorf("%+v, want a warning", result)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("banana", "orchard", account, "berth: x", "harbour", "tide: y")
	f.Add("", "", "{", "\x00", "quay", "berth: 1")
	f.Fuzz(func(t *testing.T, name, namespace, context, text, provider, before string) {
		change := both(annotated(v1alpha1.AnnotationName, name), annotated(v1alpha1.AnnotationNamespace, namespace), config(text),
			annotated(v1alpha1.AnnotationContextObject, context), func(s *corev1.Secret) { s.Labels[v1alpha1.LabelProvider] = provider })
		written(t, secrets.Request{Secret: secret(change)})
		written(t, secrets.Request{Secret: secret(change), Old: secret(both(change, config(before))), User: authority.Subject{Name: agent}})
	})
}
