package targets

import (
	"fmt"
	"slices"
	"strings"

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

// Shorts are the short forms of all types, for help: the first field is without its name.
func Shorts() []string {
	var forms []string
	for _, system := range systems {
		if system.Adapter == nil {
			continue
		}
		form := system.Name
		for i, field := range system.Short.Fields {
			form += map[bool]string{true: ":" + strings.ToUpper(field), false: "[," + field + "=…]"}[i == 0]
		}
		forms = append(forms, form)
	}
	return forms
}
