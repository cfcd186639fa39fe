package target

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/strictjson"
)

// Kind is the kind of every providerConfig of a target system that is known.
const Kind = "Config"

// APIVersion is the apiVersion of the providerConfig of a type of target system.
func APIVersion(targetType string) string {
	return targetType + ".authentication.gardener.cloud/v1alpha1"
}

// Empty reports whether the providerConfig is empty.
func Empty(providerConfig []byte) bool { return len(bytes.TrimSpace(providerConfig)) == 0 }

// Fields are the fields of a providerConfig that is one flat JSON object of strings. It collects what is wrong with them.
type Fields struct {
	path   *field.Path
	values map[string]string
	errs   field.ErrorList
	// foreign reports whether there are no fields to check.
	foreign bool
}

// Read reads a providerConfig of a type: one JSON object with its apiVersion and kind, whose other fields are strings of the
// given names, in exactly this case, each at most once, and nothing after it. Faults are in Errors, with their paths; if
// it is the configuration of another target system, that alone.
func Read(providerConfig []byte, targetType string, path *field.Path, names ...string) *Fields {
	f := &Fields{path: path, values: map[string]string{}, foreign: true}
	if Empty(providerConfig) {
		f.errs = field.ErrorList{field.Required(path, fmt.Sprintf("an identity of type %s needs one: apiVersion %s, kind %s, and its fields (%s)", targetType, APIVersion(targetType), Kind, strings.Join(names, ", ")))}
		return f
	}
	members, err := strictjson.Members(providerConfig, strictjson.Repeats) // each is an error of its own
	if err != nil {
		f.errs = field.ErrorList{field.Invalid(path, abbreviate(string(providerConfig)), err.Error())}
		return f
	}
	known := append([]string{"apiVersion", "kind"}, names...)
	for _, m := range members {
		f.take(m, known)
	}
	if version, want := f.values["apiVersion"], APIVersion(targetType); version != want {
		f.errs = field.ErrorList{field.Invalid(path.Child("apiVersion"), abbreviate(version), fmt.Sprintf("is not of this target system: an identity of type %s needs %s", targetType, want))}
		return f
	}
	f.foreign = false
	if kind := f.values["kind"]; kind != Kind {
		f.errs = field.ErrorList{field.Invalid(path.Child("kind"), abbreviate(kind), fmt.Sprintf("is not known: %s has the kind %s", APIVersion(targetType), Kind))}
	}
	return f
}

func (f *Fields) take(m strictjson.Member, known []string) {
	path := f.path.Child(abbreviate(m.Name))
	if !slices.Contains(known, m.Name) {
		f.errs = append(f.errs, field.Forbidden(path, "is not a field of it"+closest(m.Name, known)))
		return
	}
	if _, twice := f.values[m.Name]; twice {
		f.errs = append(f.errs, field.Duplicate(path, m.Name))
		return
	}
	var value *string
	if err := json.Unmarshal(m.Value, &value); err != nil || value == nil {
		f.values[m.Name] = ""
		f.errs = append(f.errs, field.Invalid(path, abbreviate(string(m.Value)), "must be a string"))
		return
	}
	f.values[m.Name] = *value
}

func closest(name string, known []string) string {
	for _, candidate := range known {
		if strings.EqualFold(candidate, name) {
			return ": it is written " + candidate
		}
	}
	return ": there are " + strings.Join(known, ", ")
}

// Required returns a field that must be set and valid; what describes valid values. An error is reported once for a field.
func (f *Fields) Required(name, what string, right func(string) bool) string {
	if !f.foreign && f.values[name] == "" && !f.wrong(name) {
		f.errs = append(f.errs, field.Required(f.path.Child(name), what))
		return ""
	}
	return f.Optional(name, what, right)
}

// Optional returns a field that, if it is set and not empty, must be right.
func (f *Fields) Optional(name, what string, right func(string) bool) string {
	value := f.values[name]
	if !f.foreign && value != "" && !right(value) {
		f.errs = append(f.errs, field.Invalid(f.path.Child(name), abbreviate(value), what))
	}
	return value
}

func (f *Fields) wrong(name string) bool {
	path := f.path.Child(name).String()
	return slices.ContainsFunc(f.errs, func(err *field.Error) bool { return err.Field == path })
}

// Errors are all that is wrong.
func (f *Fields) Errors() field.ErrorList { return f.errs }

// abbreviate returns the start of a value that a message repeats. Package wording has one, too, and with it the types of Kubernetes,
// which adapters do without.
func abbreviate(value string) string {
	const shown = 64
	if runes := []rune(value); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}
	return value
}
