package stored

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/credence-id/credence/internal/apiserver/newer"
)

// checkedOptions are options of storages in which every object can be read again.
type checkedOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o checkedOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := o.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	config := *options.StorageConfig
	config.Codec = newer.Codec(checkedCodec{config.Codec, resource.Group})
	options.StorageConfig = &config
	return options, nil
}

// checkedCodec refuses to encode what it could not decode. One such object would make lists of all others fail.
type checkedCodec struct {
	runtime.Codec
	group string
}

// Encode implements runtime.Encoder. The error of a time that can't be decoded is one of the API.
func (c checkedCodec) Encode(obj runtime.Object, w io.Writer) error {
	value := reflect.Indirect(reflect.ValueOf(obj))
	path, found, bad := badTime(value)
	if !bad {
		return c.Codec.Encode(obj, w)
	}
	var name string
	if object, err := meta.Accessor(obj); err == nil {
		name = object.GetName()
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: c.group, Kind: value.Type().Name()}, name, field.ErrorList{
		field.Invalid(field.NewPath(strings.TrimPrefix(path, ".")), found.Format(time.RFC3339), "must be in the years 0 to 9999 in UTC: an object with another time can't be read back"),
	})
}

// badTime returns the path and the value of the first time of a value that can't be decoded: its year in UTC does not have four digits.
func badTime(v reflect.Value) (path string, found time.Time, bad bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return badTime(v.Elem()) // that of nil is of no kind
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			found = v.Interface().(time.Time)
			year := found.UTC().Year()
			return "", found, year < 0 || year > 9999
		}
		for i := range v.NumField() {
			if !v.Field(i).CanInterface() {
				continue // it is not encoded
			}
			if path, found, bad = badTime(v.Field(i)); bad {
				if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
					path = "." + name + path
				}
				return path, found, true
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v.Len() {
			if path, found, bad = badTime(v.Index(i)); bad {
				return fmt.Sprintf("[%d]%s", i, path), found, true
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if path, found, bad = badTime(entries.Value()); bad {
				return fmt.Sprintf("[%v]%s", entries.Key(), path), found, true
			}
		}
	}
	return "", time.Time{}, false
}
