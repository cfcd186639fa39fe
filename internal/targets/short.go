package targets

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/target"
)

// Declared is what a WorkloadIdentity declares about its target.
type Declared struct {
	Type string
	// ProviderConfig is JSON, or nil.
	ProviderConfig []byte
	// Audiences are empty if the target has no usual one.
	Audiences []string
}

// Declare reads the short form of a target, TYPE[:VALUE[,FIELD=VALUE...]], such as aws:arn:aws:iam::112233445566:role/cart. The type must be
// known, and the fields right.
func Declare(short string) (Declared, error) {
	name, rest, _ := strings.Cut(short, ":")
	if !Known(name) {
		return Declared{}, fmt.Errorf("%q is not a type of target system: write TYPE:VALUE, where TYPE is one of %s", name, strings.Join(Types(), ", "))
	}
	system := systems[slices.IndexFunc(systems, func(s target.System) bool { return s.Name == name })]
	config, err := system.Short.ProviderConfig(name, rest)
	if err != nil {
		return Declared{}, err
	}
	checked, err := target.Check(system.Adapter, config)
	if err != nil {
		return Declared{}, err
	}
	declared := Declared{Type: name, ProviderConfig: config}
	if expected := append(checked.Audiences(), system.Short.Audience); expected[0] != "" {
		declared.Audiences = expected[:1]
	}
	return declared, nil
}

// Shorts are the short forms of all types, for help: the first field is without its name, and in brackets is what may be left out.
func Shorts() []string {
	var forms []string
	for _, system := range systems {
		if system.Adapter == nil {
			continue
		}
		form := ""
		for i, name := range system.Short.Fields {
			part := map[bool]string{true: ":" + strings.ToUpper(name), false: "," + name + "=…"}[i == 0]
			if !required(system, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q}`, target.APIVersion(system.Name), target.Kind), name) {
				part = "[" + part + "]"
			}
			form += part
		}
		if form != "" && !required(system, nil) {
			form = "[" + form + "]"
		}
		forms = append(forms, system.Name+form)
	}
	return forms
}

// required reports whether a type refuses a providerConfig for a missing field, or a missing providerConfig.
func required(system target.System, config []byte, name ...string) bool {
	path := field.NewPath("config")
	_, errs := system.Adapter.Parse(config, path)
	for _, part := range name {
		path = path.Child(part)
	}
	return slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Type == field.ErrorTypeRequired && err.Field == path.String() })
}
