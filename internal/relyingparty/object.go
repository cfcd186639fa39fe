package relyingparty

import (
	"encoding/json"
	"fmt"

	"github.com/credence-id/credence/internal/strictjson"
)

// ParseObject returns the members of the one JSON object that data holds, as all readers see them (RFC 7519, section 4).
func ParseObject(data []byte) (map[string]json.RawMessage, error) {
	members, err := strictjson.Object(data)
	if err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	return members, nil
}

// stringMember returns the string member of that name; ok is false without it.
func stringMember(members map[string]json.RawMessage, name string) (value string, ok bool, err error) {
	raw, ok := members[name]
	if !ok {
		return "", false, nil
	}
	value, isText := strictjson.Text(raw)
	if !isText {
		return "", true, fmt.Errorf("%q is not a string", name)
	}
	return value, true, nil
}

// requiredString returns the string member of that name, or an error without it.
func requiredString(members map[string]json.RawMessage, name string) (string, error) {
	value, ok, err := stringMember(members, name)
	if err == nil && !ok {
		err = fmt.Errorf("%q is missing", name)
	}
	return value, err
}

// stringsMember returns the member of that name, an array of strings; nil without it.
func stringsMember(members map[string]json.RawMessage, name string) ([]string, error) {
	raw, ok := members[name]
	if !ok {
		return nil, nil
	}
	values, ok := strictjson.Texts(raw)
	if !ok {
		return nil, fmt.Errorf("%q is not an array of strings", name)
	}
	return values, nil
}
