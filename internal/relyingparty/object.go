package relyingparty

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON from outside; the tokens and documents of real issuers nest less than five deep.
const maxDepth = 32

// ParseObject returns the members of the one JSON object that data holds. Member names are matched exactly, and an object
// at any depth with two members of the same name is an error: readers disagree on which of the two counts (RFC 7519,
// section 4).
func ParseObject(data []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := checkObject(data); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	return members, nil
}

// container is a JSON object or array that the walk of checkObject is inside of.
type container struct {
	names   map[string]bool // nil for an array
	atValue bool            // in an object: a name was read, its value comes next
}

func checkObject(data []byte) error {
	if !json.Valid(data) {
		return errors.New("it is not valid JSON")
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); trimmed[0] != '{' {
		return errors.New("it is not a JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var open []container
	for {
		word, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("it is not valid JSON: %w", err)
		}
		if name, isString := word.(string); isString && len(open) > 0 {
			if here := &open[len(open)-1]; here.names != nil && !here.atValue {
				if here.names[name] {
					return fmt.Errorf("it has two members named %q", name)
				}
				here.names[name] = true
				here.atValue = true
				continue
			}
		}
		switch word {
		case json.Delim('{'):
			open = append(open, container{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, container{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > maxDepth {
			return fmt.Errorf("it is nested more than %d deep", maxDepth)
		}
		if len(open) == 0 {
			return nil
		}
		if word != json.Delim('{') && word != json.Delim('[') {
			open[len(open)-1].atValue = false
		}
	}
}

// stringMember returns the string member of that name; ok is false without it.
func stringMember(members map[string]json.RawMessage, name string) (value string, ok bool, err error) {
	raw, ok := members[name]
	if !ok {
		return "", false, nil
	}
	if len(raw) == 0 || raw[0] != '"' {
		return "", true, fmt.Errorf("%q is not a string", name)
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", true, fmt.Errorf("%q is not a string: %w", name, err)
	}
	return value, true, nil
}

// stringsMember returns the member of that name, an array of strings; nil without it.
func stringsMember(members map[string]json.RawMessage, name string) ([]string, error) {
	raw, ok := members[name]
	if !ok {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || items == nil {
		return nil, fmt.Errorf("%q is not an array of strings", name)
	}
	values := make([]string, len(items))
	for i, item := range items {
		if item[0] != '"' || json.Unmarshal(item, &values[i]) != nil {
			return nil, fmt.Errorf("%q is not an array of strings", name)
		}
	}
	return values, nil
}
