package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/strictjson"
)

// Short is how a providerConfig is written in one argument of a command: VALUE[,FIELD=VALUE...].
type Short struct {
	// Fields are those of the providerConfig. The first needs no name.
	Fields []string
	// Audience is what tokens are for if nothing else is given; empty if the Config has its own, or if there is no usual one.
	Audience string
}

// ProviderConfig returns the providerConfig that a text is short for; nil for an empty text. A comma that no FIELD= follows is part of the
// value before it. Values are not checked.
func (s Short) ProviderConfig(targetType, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	if len(s.Fields) == 0 {
		return nil, fmt.Errorf("an identity of type %s has no fields: write %s alone", targetType, targetType)
	}
	names, values := []string{}, map[string]string{}
	for i, part := range strings.Split(text, ",") {
		name, value, named := strings.Cut(part, "=")
		switch named = named && slices.Contains(s.Fields, name); {
		case named && values[name] != "":
			return nil, fmt.Errorf("%s is given twice", name)
		case named:
		case i == 0:
			name, value = s.Fields[0], part
		default:
			values[names[len(names)-1]] += "," + part
			continue
		}
		names, values[name] = append(names, name), value
	}
	values["apiVersion"], values["kind"] = APIVersion(targetType), Kind
	return strictjson.Encode(values)
}
