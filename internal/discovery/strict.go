package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth is more nesting than any discovery document has.
const maxDepth = 16

// checkJSON accepts one JSON value in UTF-8 whose objects have unique member names, and nothing after it. Parsers differ
// in which of two equal names they use, so a document with both would mean different things to different readers.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := checkValue(decoder, 0); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has something after the end of its JSON value")
	}
	return nil
}

func checkValue(decoder *json.Decoder, depth int) error {
	token, err := decoder.Token()
	if err != nil {
		return syntax(err)
	}
	opening, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	names := map[string]bool{}
	for decoder.More() {
		if opening == '{' {
			if err := checkName(decoder, names); err != nil {
				return err
			}
		}
		if err := checkValue(decoder, depth+1); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return syntax(err)
	}
	return nil
}

func checkName(decoder *json.Decoder, seen map[string]bool) error {
	token, err := decoder.Token()
	if err != nil {
		return syntax(err)
	}
	name, ok := token.(string)
	if !ok {
		return errors.New("has an object with a member name that is not a string")
	}
	if seen[name] {
		return fmt.Errorf("has the member %.60q twice in one object", name)
	}
	seen[name] = true
	return nil
}

func syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("is not complete JSON")
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// members returns the members of a JSON object by their exact names: encoding/json takes "ISSUER" for a field "issuer",
// relying parties do not.
func members(data []byte) (map[string]json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, false
	}
	return object, true
}

// text returns a member that is a JSON string.
func text(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// texts returns a member that is an array of JSON strings.
func texts(raw json.RawMessage) ([]string, bool) {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil || elements == nil {
		return nil, false
	}
	list := make([]string, 0, len(elements))
	for _, element := range elements {
		s, ok := text(element)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}
