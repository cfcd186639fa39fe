package keys

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/strictjson"
)

// object is a JSON object whose member names are exact and appear once. It keeps the first error; what is read after that is of no use.
type object struct {
	path    string
	members map[string]json.RawMessage
	err     error
}

// decodeObject reads data as one object that has no members but the known ones. path is the field that data is the
// value of, empty for the whole document.
func decodeObject(path string, data []byte, known ...string) *object {
	o := &object{path: path, members: map[string]json.RawMessage{}}
	members, err := strictjson.Members(data, strictjson.AnyBytes) // as earlier versions read it
	if err != nil {
		o.err = o.malformed(err)
	}
	for _, m := range members {
		if o.err == nil && !slices.Contains(known, m.Name) {
			o.err = o.malformed(fmt.Errorf("unknown field %.64q, expected one of %q", m.Name, known))
		}
		o.members[m.Name] = m.Value
	}
	return o
}

func (o *object) has(name string) bool { return o.members[name] != nil }

// decode reads a member, which must be there and not null.
func (o *object) decode(name string, into any) {
	switch value := o.members[name]; {
	case o.err != nil:
	case value == nil:
		o.err = fmt.Errorf("%s: missing", o.field(name))
	case string(value) == "null":
		o.err = fmt.Errorf("%s: null is not allowed", o.field(name))
	default:
		if err := json.Unmarshal(value, into); err != nil {
			o.err = fmt.Errorf("%s: %w", o.field(name), err)
		}
	}
}

// optional is decode for a member that may be absent.
func (o *object) optional(name string, into any) {
	if o.has(name) {
		o.decode(name, into)
	}
}

// time decodes a member that holds a time of RFC 3339.
func (o *object) time(name string) (t time.Time) {
	o.decode(name, &t)
	// An offset can carry a time out of the years that RFC 3339 can write.
	if year := t.UTC().Year(); o.err == nil && (year < 1 || year > 9999) {
		o.err = fmt.Errorf("%s: %s is out of range", o.field(name), o.members[name])
	}
	return t.UTC()
}

// optionalTime decodes a member that holds a time of RFC 3339, the zero time if it is not there.
func (o *object) optionalTime(name string) time.Time {
	if !o.has(name) {
		return time.Time{}
	}
	return o.time(name)
}

// seconds decodes a member that holds a positive number of seconds, 0 if it is not there.
func (o *object) seconds(name string) time.Duration {
	if !o.has(name) {
		return 0
	}
	var seconds int64
	o.decode(name, &seconds)
	if most := int64(longestSetting / time.Second); o.err == nil && (seconds < 1 || seconds > most) {
		o.err = fmt.Errorf("%s: %d is not between 1 and %d", o.field(name), seconds, most)
	}
	return time.Duration(seconds) * time.Second
}

// field names a known member by its path in the document.
func (o *object) field(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o *object) malformed(err error) error {
	if o.path == "" {
		return fmt.Errorf("not a ring document: %w", err)
	}
	return fmt.Errorf("%s: %w", o.path, err)
}
