package gmsa

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
)

// MaxContents is how many bytes of contents a pod can carry (Kubernetes' own limit of gmsaCredentialSpec).
const MaxContents = 64 << 10

// maxDepth is how deep contents may nest; credential specs do to 4.
const maxDepth = 32

// Canonical is a credspec as pods get it: JSON with sorted keys and without white space. It returns an error if the value is not
// a JSON object or is larger than a pod can carry.
func Canonical(credspec any) (string, error) {
	if object, ok := credspec.(map[string]any); !ok || len(object) == 0 {
		return "", errors.New("it has no credspec")
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(credspec); err != nil {
		return "", fmt.Errorf("encode credspec: %w", err)
	}
	contents := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(contents) > MaxContents {
		return "", fmt.Errorf("its credspec has %d bytes of JSON, and pods can carry %d", len(contents), MaxContents)
	}
	return string(contents), nil
}

// errDiffers is returned for valid contents that are not the same.
var errDiffers = errors.New("they differ")

// Same returns nil if contents are the same JSON object as canonical. White space and the order of keys do not matter, anything
// else does. It returns an error for contents that are invalid or ambiguous.
func Same(contents, canonical string) error {
	if contents == canonical {
		return nil
	}
	given, err := parse(contents)
	if err != nil {
		return err
	}
	want, err := parse(canonical)
	if err != nil {
		return fmt.Errorf("read the credspec of the object: %w", err)
	}
	if !reflect.DeepEqual(given, want) {
		return errDiffers
	}
	return nil
}

// parse reads one JSON object that can be read in one way only: runtimes take the first of two equal keys, or the last.
func parse(contents string) (map[string]any, error) {
	switch {
	case len(contents) > MaxContents:
		return nil, fmt.Errorf("they have %d bytes, %d are allowed", len(contents), MaxContents)
	case !utf8.ValidString(contents):
		return nil, errors.New("they are not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(contents)))
	decoder.UseNumber()
	value, err := element(decoder, 0)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("they end before their JSON does")
		}
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("they are JSON, and no object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows their JSON object")
	}
	return object, nil
}

func element(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return nil, fmt.Errorf("invalid JSON at byte %d", syntax.Offset)
		}
		return nil, err
	}
	delimiter, nested := token.(json.Delim)
	if !nested {
		return token, nil
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("they nest deeper than %d", maxDepth)
	}
	if delimiter == '[' {
		return list(decoder, depth+1)
	}
	return object(decoder, depth+1)
}

func object(decoder *json.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for decoder.More() {
		key, err := element(decoder, depth)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the decoder takes nothing else for a key
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("they have a key twice: %.64q", name)
		}
		if members[name], err = element(decoder, depth); err != nil {
			return nil, err
		}
	}
	return members, closing(decoder)
}

func list(decoder *json.Decoder, depth int) (any, error) {
	values := []any{}
	for decoder.More() {
		value, err := element(decoder, depth)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, closing(decoder)
}

func closing(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return fmt.Errorf("invalid JSON at byte %d", syntax.Offset)
		}
		return err
	}
	return nil
}
