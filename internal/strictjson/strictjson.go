// Package strictjson reads JSON that all readers understand alike, and writes it. In goes a text, out come the members of an object
// under their exact names, or the first fault with its place; in goes a value, out comes its text. It never chooses between two
// readings: a key that stands twice, bytes that are not UTF-8, data after the value and deep nesting are faults (RFC 8259, sections 4
// and 8; RFC 7493).
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep objects and lists may be nested. The deepest document that is read needs less than ten levels.
const MaxDepth = 32

// Option is a rule that a reader leaves out.
type Option string

const (
	// AnyBytes accepts bytes that are not UTF-8; encoding/json reads them as U+FFFD. It is for what was stored without that rule.
	AnyBytes Option = "any bytes"
	// Repeats accepts keys that stand twice. It is for readers that report all of them, with their places.
	Repeats Option = "repeats"
)

// Fault is a kind of error.
type Fault string

// The faults.
const (
	Syntax   Fault = "syntax"   // not JSON, or cut off
	Encoding Fault = "encoding" // not UTF-8
	Depth    Fault = "depth"
	Repeat   Fault = "repeat" // a key that stands twice in an object
	Trailing Fault = "trailing"
	Type     Fault = "type" // not an object
)

// Error is a fault. Its text is a predicate, such as "is not UTF-8": callers put the subject before it.
type Error struct {
	Fault Fault
	// At is the byte where the fault begins.
	At   int
	text string
}

func (e *Error) Error() string { return e.text }

// Member is a member of an object.
type Member struct {
	Name string
	// Value is a part of the text that was read, not a copy.
	Value json.RawMessage
}

// Check returns nil for one JSON value. Errors are *Error.
func Check(data []byte, options ...Option) error {
	_, err := read(data, options)
	return err
}

// Members returns the members of one JSON object in their order. Errors are *Error.
func Members(data []byte, options ...Option) ([]Member, error) {
	members, err := read(data, options)
	if start := bytes.TrimLeft(data, " \t\r\n"); err == nil && start[0] != '{' {
		return nil, &Error{Type, len(data) - len(start), "is not a JSON object"}
	}
	return members, err
}

// Object returns the members of one JSON object by their names. Errors are *Error.
func Object(data []byte) (map[string]json.RawMessage, error) {
	members, err := Members(data)
	if err != nil {
		return nil, err
	}
	object := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		object[m.Name] = m.Value
	}
	return object, nil
}

// Text returns the value of a member that is a string; ok is false for every other value, and for none.
func Text(value json.RawMessage) (text string, ok bool) {
	ok = len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil
	return text, ok
}

// Texts returns the value of a member that is a list of strings; ok is false for every other value, and for none.
func Texts(value json.RawMessage) (texts []string, ok bool) {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil || items == nil {
		return nil, false
	}
	texts = make([]string, len(items))
	for i, item := range items {
		if texts[i], ok = Text(item); !ok {
			return nil, false
		}
	}
	return texts, true
}

// Known decodes one JSON value into a struct; fields that the struct does not have, or has in another case, and data after the value, are
// errors. It is for what people or earlier versions stored: of equal keys the last counts, as with encoding/json.
func Known(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &Error{Trailing, int(decoder.InputOffset()), "has data after the end"}
	}
	return spelling(data, reflect.TypeOf(into))
}

// spelling refuses names of fields in another case, which encoding/json accepts and the decoders of Kubernetes do not.
func spelling(data []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil // it reads itself
	}
	switch t.Kind() {
	case reflect.Slice:
		var items []json.RawMessage
		_ = json.Unmarshal(data, &items) // fails for bytes, which are a string
		for _, item := range items {
			if err := spelling(item, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct, reflect.Map:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(data, &members) // fails for other values, which have no fields
		for _, name := range slices.Sorted(maps.Keys(members)) {
			of, err := member(t, name)
			if err == nil {
				err = spelling(members[name], of)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// member is the type of a member of an object, which is known but for its case.
func member(t reflect.Type, name string) (of reflect.Type, err error) {
	if t.Kind() == reflect.Map {
		return t.Elem(), nil
	}
	for _, field := range reflect.VisibleFields(t) {
		known, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch known = cmp.Or(known, field.Name); {
		case known == name:
			return field.Type, nil
		case strings.EqualFold(known, name):
			err = fmt.Errorf("has the field %.64q, which is spelt %q", name, known)
		}
	}
	return t, err
}

// Encode returns a value as JSON without white space, whose characters of HTML stay as they are.
func Encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// reader walks through a text by its tokens.
type reader struct {
	data    []byte
	decoder *json.Decoder
	repeats bool
	members []Member // of the outermost object
}

func read(data []byte, options []Option) ([]Member, error) {
	if !slices.Contains(options, AnyBytes) && !utf8.Valid(data) {
		return nil, &Error{Encoding, 0, "is not UTF-8"}
	}
	r := reader{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), repeats: slices.Contains(options, Repeats)}
	r.decoder.UseNumber()
	if err := r.value(0); err != nil {
		return nil, err
	}
	at := r.next()
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Trailing, at, "has data after the end"}
	}
	return r.members, nil
}

// next is the place of the next token.
func (r *reader) next() int {
	at := int(r.decoder.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	return at
}

func (r *reader) token() (json.Token, error) {
	at := r.next()
	token, err := r.decoder.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, &Error{Syntax, at, fmt.Sprintf("is not JSON: %v, at byte %d", err, at)}
	}
	return token, nil
}

// value reads a value inside of depth others.
func (r *reader) value(depth int) error {
	start := r.next()
	token, err := r.token()
	opening, nested := token.(json.Delim)
	if err != nil || !nested {
		return err
	}
	if depth == MaxDepth {
		return &Error{Depth, start, fmt.Sprintf("is nested more than %d levels deep", MaxDepth)}
	}
	seen := map[string]bool{}
	for r.decoder.More() {
		var name string
		if opening == '{' {
			if name, err = r.name(seen); err != nil {
				return err
			}
		}
		at := r.next()
		if err := r.value(depth + 1); err != nil {
			return err
		}
		if depth == 0 && opening == '{' {
			r.members = append(r.members, Member{name, r.data[at:r.decoder.InputOffset()]})
		}
	}
	_, err = r.token()
	return err
}

func (r *reader) name(seen map[string]bool) (string, error) {
	at := r.next()
	token, err := r.token()
	if err != nil {
		return "", err
	}
	name, _ := token.(string) // the decoder accepts nothing else for a key
	if seen[name] && !r.repeats {
		return "", &Error{Repeat, at, fmt.Sprintf("has the key %.64q twice, at byte %d", name, at)}
	}
	seen[name] = true
	return name, nil
}
