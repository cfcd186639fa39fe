package workloadidentity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	if len(raw) == 0 || bytes.TrimSpace(raw)[0] != '{' {
		return field.ErrorList{field.Invalid(path, abbreviate(string(raw)), "must be an object with apiVersion and kind")}
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
	} else if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), abbreviate(apiVersion), "must be a group and a version, such as aws.authentication.gardener.cloud/v1alpha1"))
	}
	if _, err := requiredString(typed, path, "kind"); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func requiredString(object map[string]json.RawMessage, path *field.Path, key string) (string, *field.Error) {
	raw, ok := object[key]
	if !ok {
		return "", field.Required(path.Child(key), "providerConfig must say of which "+key+" it is")
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
