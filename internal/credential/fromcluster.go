package credential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// FromCluster decodes what a cluster's own configuration says for a source, in the field of that name, into said, a pointer to a struct.
// An unknown field is an error.
func FromCluster(raw json.RawMessage, source string, config any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(config); err != nil {
		return fmt.Errorf("read %s in the configuration of the cluster: %w", source, err)
	}
	return nil
}

// LeftOpen sets own, a setting of the command line, to what the cluster says of it; a zero value says nothing. A cluster says only what
// the command line leaves open, or any cluster could have the credential of any other: that it says otherwise is an error.
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

// ListLeftOpen is LeftOpen for a list, of which nil says nothing. The separator is that of the error.
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

// Contradiction refuses a cluster that would have another credential than the command line allows: it may be anybody's.
func Contradiction(field, own, ofCluster string) error {
	return fmt.Errorf("the configuration of the cluster says %s %q, and the command line %q: a cluster says only what the command line leaves open",
		field, ofCluster, own)
}
