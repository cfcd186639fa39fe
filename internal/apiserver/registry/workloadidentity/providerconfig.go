package workloadidentity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/internal/wording"
)

const maxProviderConfigBytes = 64 << 10

// validateProviderConfig checks what holds for every target system: one JSON object with apiVersion and kind, bounded,
// in which no key stands twice: two readers must never see two different configurations.
func validateProviderConfig(raw []byte, path *field.Path) field.ErrorList {
	if len(raw) > maxProviderConfigBytes {
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("%d bytes", len(raw)), fmt.Sprintf("must not be larger than %d bytes", maxProviderConfigBytes))}
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return field.ErrorList{field.Invalid(path, wording.Abbreviate(string(raw)), "must be an object with apiVersion and kind")}
	}
	typed, err := strictjson.Object(raw)
	if err != nil {
		return unreadable(raw, path, err)
	}
	var errs field.ErrorList
	apiVersion, missing := requiredString(typed, path, "apiVersion")
	if missing != nil {
		errs = append(errs, missing)
	} else if gv, err := schema.ParseGroupVersion(apiVersion); err != nil || len(utilvalidation.IsDNS1035Label(gv.Version)) > 0 || gv.Group != "" && len(utilvalidation.IsDNS1123Subdomain(gv.Group)) > 0 {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), wording.Abbreviate(apiVersion), "must be a group and a version, such as aws.authentication.gardener.cloud/v1alpha1"))
	}
	kind, missing := requiredString(typed, path, "kind")
	if missing != nil {
		errs = append(errs, missing)
	} else if len(utilvalidation.IsDNS1035Label(strings.ToLower(kind))) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), wording.Abbreviate(kind), "must be the name of a kind, such as Config"))
	}
	for key := range typed {
		for _, name := range []string{"apiVersion", "kind"} {
			if key != name && strings.EqualFold(key, name) {
				errs = append(errs, field.Invalid(path.Child(wording.Abbreviate(key)), "", "differs from "+name+" in case only"))
			}
		}
	}
	return errs
}

// CheckProviderConfigKeys checks a part of a configuration, as a patch has it: no key stands twice.
func CheckProviderConfigKeys(raw []byte) field.ErrorList {
	if err := strictjson.Check(raw); err != nil {
		return unreadable(raw, providerConfigPath, err)
	}
	return nil
}

// CheckProviderConfigText checks a configuration that the API machinery reads as YAML, before it does: its keys, strings and numbers.
func CheckProviderConfigText(raw []byte) field.ErrorList {
	if errs := CheckProviderConfigKeys(raw); len(errs) > 0 {
		return errs
	}
	return validateConfigText(v1alpha1.TargetSystem{ProviderConfig: &runtime.RawExtension{Raw: raw}})
}

func unreadable(raw []byte, path *field.Path, err error) field.ErrorList {
	return field.ErrorList{field.Invalid(path, wording.Abbreviate(string(raw)), err.Error())}
}

func requiredString(object map[string]json.RawMessage, path *field.Path, key string) (string, *field.Error) {
	raw, ok := object[key]
	if !ok {
		return "", field.Required(path.Child(key), "providerConfig must have the field "+key)
	}
	value, isText := strictjson.Text(raw)
	if !isText || value == "" {
		return "", field.Invalid(path.Child(key), wording.Abbreviate(string(raw)), "must be a string that is not empty")
	}
	return value, nil
}
