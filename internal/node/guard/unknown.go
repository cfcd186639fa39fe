package guard

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unknownOf names the fields of a message that this version of CRI does not have, and that can't be judged.
func unknownOf(m proto.Message) []string {
	var found []string
	// It ends early with an error of the function alone.
	_ = protorange.Range(m.ProtoReflect(), func(values protopath.Values) error {
		message, is := values.Index(-1).Value.Interface().(protoreflect.Message)
		if !is {
			return nil
		}
		for rest := message.GetUnknown(); len(rest) > 0; {
			number, _, length := protowire.ConsumeField(rest)
			if length < 0 {
				break // decoding has refused that
			}
			found = append(found, fmt.Sprintf("field %d of %s, which this version of the guard does not know", number, message.Descriptor().Name()))
			rest = rest[length:]
		}
		return nil
	})
	slices.Sort(found)
	return found
}
