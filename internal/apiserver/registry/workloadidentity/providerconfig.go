package workloadidentity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxProviderConfigBytes = 64 << 10
	maxProviderConfigDepth = 32
)

// validateProviderConfig checks what holds for every target system: one JSON object with apiVersion and kind, bounded,
// in which no key stands twice: two readers must never see two different configurations.
func validateProviderConfig(raw []byte, path *field.Path) field.ErrorList {
	if len(raw) > maxProviderConfigBytes {
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("%d bytes", len(raw)), fmt.Sprintf("must not be larger than %d bytes", maxProviderConfigBytes))}
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return field.ErrorList{field.Invalid(path, abbreviate(string(raw)), "must be an object with apiVersion and kind")}
	}
	if !utf8.Valid(raw) {
		return field.ErrorList{field.Invalid(path, "", "must be valid UTF-8")}
	}
	if err := checkJSON(raw); err != nil {
		return field.ErrorList{field.Invalid(path, abbreviate(string(raw)), err.Error())}
	}
	var typed map[string]json.RawMessage
	if err := json.Unmarshal(raw, &typed); err != nil {
		return field.ErrorList{field.Invalid(path, abbreviate(string(raw)), err.Error())}
	}
	var errs field.ErrorList
	apiVersion, err := requiredString(typed, path, "apiVersion")
	if err != nil {
		errs = append(errs, err)
	} else if gv, err := schema.ParseGroupVersion(apiVersion); err != nil || len(utilvalidation.IsDNS1035Label(gv.Version)) > 0 || gv.Group != "" && len(utilvalidation.IsDNS1123Subdomain(gv.Group)) > 0 {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), abbreviate(apiVersion), "must be a group and a version, such as aws.authentication.gardener.cloud/v1alpha1"))
	}
	kind, err := requiredString(typed, path, "kind")
	if err != nil {
		errs = append(errs, err)
	} else if len(utilvalidation.IsDNS1035Label(strings.ToLower(kind))) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), abbreviate(kind), "must be the name of a kind, such as Config"))
	}
	for key := range typed {
		for _, name := range []string{"apiVersion", "kind"} {
			if key != name && strings.EqualFold(key, name) {
				errs = append(errs, field.Invalid(path.Child(abbreviate(key)), "", "differs from "+name+" in case only"))
			}
		}
	}
	return errs
}

// CheckProviderConfigKeys checks a part of a configuration, as a patch has it: no key stands twice.
func CheckProviderConfigKeys(raw []byte) field.ErrorList {
	path := targetPath.Child("providerConfig")
	if err := checkJSON(raw); err != nil {
		return field.ErrorList{field.Invalid(path, abbreviate(string(raw)), err.Error())}
	}
	return nil
}

func requiredString(object map[string]json.RawMessage, path *field.Path, key string) (string, *field.Error) {
	raw, ok := object[key]
	if !ok {
		return "", field.Required(path.Child(key), "providerConfig must have the field "+key)
	}
	var value string
	if err := json.Unmarshal(raw, &value); err != nil || value == "" || bytes.Equal(raw, []byte("null")) {
		return "", field.Invalid(path.Child(key), abbreviate(string(raw)), "must be a string that is not empty")
	}
	return value, nil
}

// checkJSON reads one JSON value and refuses duplicate keys, trailing data and deep nesting.
func checkJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := checkValue(decoder, 0); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has data after the object")
	}
	return nil
}

func checkValue(decoder *json.Decoder, depth int) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	opening, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth++; depth > maxProviderConfigDepth {
		return fmt.Errorf("is nested more than %d levels deep", maxProviderConfigDepth)
	}
	seen := map[string]struct{}{}
	for decoder.More() {
		if opening == '{' {
			key, err := decoder.Token()
			if err != nil {
				return fmt.Errorf("is not JSON: %w", err)
			}
			name := key.(string)
			if _, duplicate := seen[name]; duplicate {
				return fmt.Errorf("has the key %q twice", name)
			}
			seen[name] = struct{}{}
		}
		if err := checkValue(decoder, depth); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	return nil
}
