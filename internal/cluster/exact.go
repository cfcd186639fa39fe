package cluster

import (
	"errors"
	"fmt"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/jsonfields"
)

// ErrNewer is the error of an object that a newer version of Credence has stored, with fields that this program would drop.
var ErrNewer = errors.New("the object has fields that this program does not know")

// Exact reads an object of which no field may be lost, but for its status, which others write. Unknown fields are ErrNewer.
type Exact[Object any] struct{ Object Object }

// UnmarshalJSON implements json.Unmarshaler.
func (e *Exact[Object]) UnmarshalJSON(data []byte) error {
	fields, err := jsonfields.Unknown(data, &e.Object, "status.")
	if err != nil || len(fields) == 0 {
		return err
	}
	err = fmt.Errorf("%w (%s)", ErrNewer, strings.Join(fields, ", "))
	if object, ok := any(&e.Object).(metav1.Object); ok {
		err = fmt.Errorf("%s: %w", path.Join(object.GetNamespace(), object.GetName()), err)
	}
	return err
}
