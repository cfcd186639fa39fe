package keys

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/strictjson"
)

// object is a JSON object whose member names are exact and appear once.
type object struct {
	path    string
	members map[string]json.RawMessage
}

// decodeObject reads data as one object that has no members but the known ones. path is the field that data is the
// value of, empty for the whole document.
func decodeObject(path string, data []byte, known ...string) (object, error) {
	o := object{path: path, members: map[string]json.RawMessage{}}
	members, err := strictjson.Members(data, strictjson.AnyBytes) // as earlier versions read it
	if err != nil {
		return object{}, o.malformed(err)
	}
	for _, m := range members {
		if !slices.Contains(known, m.Name) {
			return object{}, o.malformed(fmt.Errorf("unknown field %.64q, expected one of %q", m.Name, known))
		}
		o.members[m.Name] = m.Value
	}
	return o, nil
}

func (o object) has(name string) bool { return o.members[name] != nil }

// decode reads a member, which must be there and not null.
func (o object) decode(name string, into any) error {
	value := o.members[name]
	switch {
	case value == nil:
		return fmt.Errorf("%s: missing", o.field(name))
	case string(value) == "null":
		return fmt.Errorf("%s: null is not allowed", o.field(name))
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%s: %w", o.field(name), err)
	}
	return nil
}

// time decodes a member that holds a time of RFC 3339.
func (o object) time(name string) (time.Time, error) {
	var t time.Time
	if err := o.decode(name, &t); err != nil {
		return time.Time{}, err
	}
	// An offset can carry a time out of the years that RFC 3339 can write.
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return time.Time{}, fmt.Errorf("%s: %s is out of range", o.field(name), o.members[name])
	}
	return t.UTC(), nil
}

// optionalTime decodes a member that holds a time of RFC 3339, the zero time if it is not there.
func (o object) optionalTime(name string) (time.Time, error) {
	if !o.has(name) {
		return time.Time{}, nil
	}
	return o.time(name)
}

// seconds decodes a member that holds a positive number of seconds, 0 if it is not there.
func (o object) seconds(name string) (time.Duration, error) {
	if !o.has(name) {
		return 0, nil
	}
	var seconds int64
	if err := o.decode(name, &seconds); err != nil {
		return 0, err
	}
	if most := int64(longestSetting / time.Second); seconds < 1 || seconds > most {
		return 0, fmt.Errorf("%s: %d is not between 1 and %d", o.field(name), seconds, most)
	}
	return time.Duration(seconds) * time.Second, nil
}

// field names a known member by its path in the document.
func (o object) field(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o object) malformed(err error) error {
	if o.path == "" {
		return fmt.Errorf("not a ring document: %w", err)
	}
	return fmt.Errorf("%s: %w", o.path, err)
}
