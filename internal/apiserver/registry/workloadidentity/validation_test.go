package workloadidentity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const uid = "12b580fe-1f74-4195-852b-e1a74b03496a"

func valid() *v1alpha1.WorkloadIdentity {
	return &v1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Name: "banana", Namespace: "garden-local", UID: uid},
		Spec: v1alpha1.WorkloadIdentitySpec{
			Audiences: []string{"team-foo"},
			TargetSystem: v1alpha1.TargetSystem{
				Type:           "aws",
				ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/x"}`)},
			},
		},
	}
}

func audiences(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("audience-%d", i)
	}
	return list
}

// longAudiences are of n bytes together, as JSON.
func longAudiences(n int) []string {
	var list []string
	for n -= 1; n > 0; { // a bracket; each has two quotes, and a comma or a bracket
		length := min(600, n-3)
		list = append(list, strings.Repeat(string(rune('a'+len(list))), length))
		n -= length + 3
	}
	return list
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.WorkloadIdentity)
		want   []string // "field: start of detail" of each error
	}{
		"valid":                        {change: func(*v1alpha1.WorkloadIdentity) {}},
		"no providerConfig":            {change: func(w *v1alpha1.WorkloadIdentity) { w.Spec.TargetSystem.ProviderConfig = nil }},
		"20 audiences":                 {change: func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = audiences(20) }},
		"audience of 600 characters":   {change: func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{strings.Repeat("é", 600)} }},
		"sub of 255":                   {change: func(w *v1alpha1.WorkloadIdentity) { w.Name = strings.Repeat("a", 185-len(w.Namespace)) }},
		"no audience":                  {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = nil }, []string{"spec.audiences: name at least one"}},
		"21 audiences":                 {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = audiences(21) }, []string{"spec.audiences: must have at most 20 items"}},
		"empty audience":               {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"a", ""} }, []string{"spec.audiences[1]: an audience must not be empty"}},
		"audience of 601 characters":   {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{strings.Repeat("a", 601)} }, []string{"spec.audiences[0]: is 601 characters long"}},
		"audience twice":               {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"a", "b", "a"} }, []string{"spec.audiences[2]: "}},
		"audience with newline":        {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"a\nb"} }, []string{"spec.audiences[0]: must not contain control"}},
		"audience with zero width":     {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"a\u200bb"} }, []string{"spec.audiences[0]: has an invisible or invalid character at byte 1: U+200B"}},
		"audience with hangul filler":  {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"a\u3164"} }, []string{"spec.audiences[0]: has an invisible or invalid character at byte 1: U+3164"}},
		"audience that ends in space":  {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = []string{"a "} }, []string{"spec.audiences[0]: must not begin or end with a space"}},
		"audiences of 8 KiB":           {change: func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = longAudiences(8192) }},
		"audiences of 8 KiB + 1":       {func(w *v1alpha1.WorkloadIdentity) { w.Spec.Audiences = longAudiences(8193) }, []string{"spec.audiences: must not be larger than 8192 bytes"}},
		"providerConfig surrogate":     {genericConfig(`{"apiVersion":"a/v1","kind":"K","x":"\ud800"}`), []string{"spec.targetSystem.providerConfig: has half of a surrogate pair"}},
		"providerConfig large number":  {genericConfig(`{"apiVersion":"a/v1","kind":"K","x":12345678901234567890}`), []string{"spec.targetSystem.providerConfig: has the number 12345678901234567890"}},
		"no type":                      {func(w *v1alpha1.WorkloadIdentity) { w.Spec.TargetSystem.Type = "" }, []string{"spec.targetSystem.type: name the kind"}},
		"type is not a label":          {func(w *v1alpha1.WorkloadIdentity) { w.Spec.TargetSystem.Type = "aws,gcp" }, []string{"spec.targetSystem.type: a lowercase RFC 1123 label"}},
		"sub of 256":                   {func(w *v1alpha1.WorkloadIdentity) { w.Name = strings.Repeat("a", 186-len(w.Namespace)) }, []string{"metadata.name: the sub claim would be 256 characters long, at most 255 are allowed: namespace and name have 186 characters together, at most 185 fit"}},
		"name with underscore":         {func(w *v1alpha1.WorkloadIdentity) { w.Name = "a_b" }, []string{"metadata.name: a lowercase RFC 1123 subdomain"}},
		"all at once":                  {func(w *v1alpha1.WorkloadIdentity) { w.Spec = v1alpha1.WorkloadIdentitySpec{} }, []string{"spec.audiences: ", "spec.targetSystem.type: "}},
		"providerConfig null":          {config(`null`), []string{"spec.targetSystem.providerConfig: must be an object"}},
		"providerConfig array":         {config(`[]`), []string{"spec.targetSystem.providerConfig: must be an object"}},
		"providerConfig without kind":  {config(`{"apiVersion":"a/v1"}`), []string{"spec.targetSystem.providerConfig.kind: "}},
		"providerConfig without both":  {config(`{}`), []string{"spec.targetSystem.providerConfig.apiVersion: ", "spec.targetSystem.providerConfig.kind: "}},
		"providerConfig kind a number": {config(`{"apiVersion":"a/v1","kind":5}`), []string{"spec.targetSystem.providerConfig.kind: must be a string"}},
		"providerConfig kind null":     {config(`{"apiVersion":"a/v1","kind":null}`), []string{"spec.targetSystem.providerConfig.kind: must be a string"}},
		"providerConfig two slashes":   {config(`{"apiVersion":"a/b/v1","kind":"K"}`), []string{"spec.targetSystem.providerConfig.apiVersion: must be a group"}},
		"providerConfig key twice":     {config(`{"apiVersion":"a/v1","kind":"K","x":{"y":1,"y":2}}`), []string{`spec.targetSystem.providerConfig: has the key "y" twice`}},
		"providerConfig escaped twice": {config(`{"apiVersion":"a/v1","kind":"K","x":1,"\u0078":2}`), []string{`spec.targetSystem.providerConfig: has the key "x" twice`}},
		"providerConfig nested":        {config(`{"apiVersion":"a/v1","kind":"K","x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`), []string{"spec.targetSystem.providerConfig: is nested more than 32"}},
		"providerConfig trailing":      {config(`{"apiVersion":"a/v1","kind":"K"}{}`), []string{"spec.targetSystem.providerConfig: has data after"}},
		"providerConfig 64 KiB":        {genericConfig(`{"apiVersion":"a/v1","kind":"K","x":"` + strings.Repeat("x", 65536-39) + `"}`), nil},
		"providerConfig 64 KiB + 1":    {config(`{"apiVersion":"a/v1","kind":"K","x":"` + strings.Repeat("x", 65537-39) + `"}`), []string{"spec.targetSystem.providerConfig: must not be larger than 65536 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			wi := valid()
			test.change(wi)
			var got []string
			for i, err := range validate(wi) {
				line := err.Field + ": " + err.Detail
				if i < len(test.want) && strings.HasPrefix(line, test.want[i]) {
					line = test.want[i]
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func config(raw string) func(*v1alpha1.WorkloadIdentity) {
	return func(w *v1alpha1.WorkloadIdentity) {
		w.Spec.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: []byte(raw)}
	}
}

func genericConfig(raw string) func(*v1alpha1.WorkloadIdentity) {
	return func(w *v1alpha1.WorkloadIdentity) {
		config(raw)(w)
		w.Spec.TargetSystem.Type = "generic"
	}
}

func TestTypeIsImmutable(t *testing.T) {
	old, changed := valid(), valid()
	old.ResourceVersion, changed.ResourceVersion = "1", "1"
	changed.Spec.TargetSystem.Type = "gcp"
	errs := validateUpdate(changed, old)
	if len(errs) != 1 || errs[0].Field != "spec.targetSystem.type" || errs[0].Detail != "field is immutable" {
		t.Errorf("changing the type gave %v, want one error on spec.targetSystem.type", errs)
	}
	changed.Spec.TargetSystem.Type = "aws"
	changed.Spec.Audiences = []string{"other"}
	if errs := validateUpdate(changed, old); len(errs) != 0 {
		t.Errorf("changing the audiences gave %v, want no error", errs)
	}
}

func TestStatusIsTheServers(t *testing.T) {
	s := strategy{issuer: "https://issuer.example"}
	wi := valid()
	wi.Status = v1alpha1.WorkloadIdentityStatus{Sub: "forged", Issuer: "https://forged.example", Deliveries: []v1alpha1.Delivery{{Reporter: "forged"}}}
	s.PrepareForCreate(t.Context(), wi)
	want := v1alpha1.WorkloadIdentityStatus{
		Sub: "gardener.cloud:workloadidentity:garden-local:banana:" + uid, Issuer: "https://issuer.example", Conditions: wi.Status.Conditions,
	}
	if diff := cmp.Diff(want, wi.Status); diff != "" {
		t.Errorf("status after creation (-want +got):\n%s", diff)
	}
	updated := wi.DeepCopy()
	updated.Status = v1alpha1.WorkloadIdentityStatus{Sub: "forged"}
	strategy{issuer: "https://elsewhere.example"}.PrepareForUpdate(t.Context(), updated, wi)
	if diff := cmp.Diff(want, updated.Status); diff != "" {
		t.Errorf("status after update (-want +got):\n%s", diff)
	}
	if updated.Generation != 1 {
		t.Errorf("generation %d after an update that changed nothing, want 1", updated.Generation)
	}
	updated.Spec.Audiences = []string{"other"}
	s.PrepareForUpdate(t.Context(), updated, wi)
	if updated.Generation != 2 {
		t.Errorf("generation %d after an update of the spec, want 2", updated.Generation)
	}
}

func TestUnknownTargetIsAWarning(t *testing.T) {
	wi := valid()
	if warnings := (strategy{}).WarningsOnCreate(t.Context(), wi); len(warnings) != 0 {
		t.Errorf("aws: %v", warnings)
	}
	wi.Spec.TargetSystem.Type = "gcpp"
	if warnings := (strategy{}).WarningsOnCreate(t.Context(), wi); len(warnings) != 1 || !strings.Contains(warnings[0], `"gcpp"`) || !strings.Contains(warnings[0], "gcp, generic") {
		t.Errorf("gcpp: %v, want a warning with the types that are known", warnings)
	}
}
