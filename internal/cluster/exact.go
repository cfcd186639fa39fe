package cluster

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/json"
)

// ErrNewer is the error of an object that a newer version of Credence has stored, with fields that this program would drop.
var ErrNewer = errors.New("the object has fields that this program does not know")

// Exact reads an object of which no field may be lost, but for its status, which others write. Unknown fields are ErrNewer.
type Exact[Object any] struct{ Object Object }

// UnmarshalJSON implements json.Unmarshaler.
func (e *Exact[Object]) UnmarshalJSON(data []byte) error {
	unknown, err := json.UnmarshalStrict(data, &e.Object, json.DisallowUnknownFields)
	var fields []string
	for _, each := range unknown {
		if field := strings.Trim(strings.TrimPrefix(each.Error(), "unknown field "), `"`); !strings.HasPrefix(field, "status.") {
			fields = append(fields, field)
		}
	}
	if err == nil && len(fields) > 0 {
		err = fmt.Errorf("%w (%s)", ErrNewer, strings.Join(fields, ", "))
	}
	return err
}
