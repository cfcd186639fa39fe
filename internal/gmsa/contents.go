package gmsa

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/credence-id/credence/internal/strictjson"
)

// MaxContents is how many bytes of contents a pod can carry (Kubernetes' own limit of gmsaCredentialSpec).
const MaxContents = 64 << 10

// Canonical is a credspec as pods get it: JSON with sorted keys and without white space. It returns an error if the value is not
// a JSON object or is larger than a pod can carry.
func Canonical(credspec any) (string, error) {
	if object, ok := credspec.(map[string]any); !ok || len(object) == 0 {
		return "", errors.New("it has no credspec")
	}
	contents, err := strictjson.Encode(credspec)
	if err != nil {
		return "", fmt.Errorf("encode credspec: %w", err)
	}
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
	if len(contents) > MaxContents {
		return nil, fmt.Errorf("they have %d bytes, %d are allowed", len(contents), MaxContents)
	}
	if _, err := strictjson.Members([]byte(contents)); err != nil {
		return nil, fmt.Errorf("the text %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(contents))
	decoder.UseNumber()
	var object map[string]any
	err := decoder.Decode(&object)
	return object, err
}
