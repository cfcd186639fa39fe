package credential

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/strictjson"
)

// FromCluster decodes the field of a source in the cluster's own configuration into config, a pointer to a struct. A configuration
// without the field is ignored, but an unknown field in it is an error.
func FromCluster(raw json.RawMessage, source string, config any) error {
	// A struct with the one field, as the others are for other programs.
	outer := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: "Own", Type: reflect.TypeFor[json.RawMessage](), Tag: reflect.StructTag(fmt.Sprintf("json:%q", source)),
	}}))
	own := outer.Elem().Field(0)
	if json.Unmarshal(raw, outer.Interface()) != nil || own.IsNil() {
		return nil
	}
	if err := strictjson.Known(own.Bytes(), config); err != nil {
		return fmt.Errorf("read %s in the configuration of the cluster: %w", source, err)
	}
	return nil
}

// LeftOpen sets own, a setting of the command line, to the cluster's value, unless that is zero. A cluster sets only settings that
// the command line leaves open, or any cluster could have the credential of any other: a different value is an error.
func LeftOpen[T comparable](field string, own *T, ofCluster T) error {
	var open T
	if ofCluster == open {
		return nil
	}
	if *own != open && *own != ofCluster {
		return Contradiction(field, fmt.Sprint(*own), fmt.Sprint(ofCluster))
	}
	*own = ofCluster
	return nil
}

// DurationLeftOpen is LeftOpen for the field duration of a source, a text such as the example; empty is unset.
func DurationLeftOpen(source string, own *time.Duration, ofCluster, example string) error {
	if ofCluster == "" {
		return nil
	}
	d, err := time.ParseDuration(ofCluster)
	if err != nil || d <= 0 {
		return fmt.Errorf("read %s in the configuration of the cluster: duration %q is not one such as %s", source, ofCluster, example)
	}
	return LeftOpen("duration", own, d)
}

// ListLeftOpen is LeftOpen for a list; nil is unset. The separator is that of the error.
func ListLeftOpen(field string, own *[]string, ofCluster []string, separator string) error {
	if ofCluster == nil {
		return nil
	}
	if *own != nil && !slices.Equal(*own, ofCluster) {
		return Contradiction(field, strings.Join(*own, separator), strings.Join(ofCluster, separator))
	}
	*own = ofCluster
	return nil
}

// Contradiction refuses a cluster that requests another credential than the command line: it may be malicious.
func Contradiction(field, own, ofCluster string) error {
	return fmt.Errorf("the configuration of the cluster has %s %q, and the command line %q: a cluster can set only what the command line leaves open",
		field, ofCluster, own)
}
