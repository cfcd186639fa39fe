package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/credence-id/credence/internal/strictjson"
)

// Shell quotes a value for a POSIX shell: between single quotes only the next one is special.
func Shell(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }

// Command is one command of a shell, an option in each line. The words are ours, the values of options are quoted.
func Command(words string, options ...[2]string) string {
	lines := []string{words}
	for _, option := range options {
		lines = append(lines, "  "+option[0]+Shell(option[1]))
	}
	return strings.Join(lines, " \\\n") + "\n"
}

// Document is indented JSON. Characters of HTML stay as they are: they are compared byte for byte.
func Document(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic(err) // maps and slices of strings always have a JSON form
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Object is an object of JSON or of HCL, whose members keep their order.
type Object []Member

// Member is a name of ours, and a value: a string, strings, a number, a Reference, an Object or several, or a Nested block.
type Member = struct {
	Name  string
	Value any
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		for j, part := range []any{m.Name, m.Value} {
			if j > 0 {
				text.WriteByte(':')
			}
			encoded, err := strictjson.Encode(part)
			if err != nil {
				return nil, err
			}
			text.Write(encoded)
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// ResourceName is a name of a Terraform resource for an identity: characters other than letters and digits become _.
func (i Identity) ResourceName() string {
	return "credence_" + strings.NewReplacer("-", "_", ".", "_").Replace(i.Namespace+"_"+i.Name) + "_" + Digest(i.Namespace+"/"+i.Name)
}

// SharedName is a name of Terraform for what the identities of an issuer share at a place, such as an account or a path: equal for all
// of them.
func (i Identity) SharedName(place string) string { return "credence_" + Digest(i.Issuer+"\n"+place) }

// Digest keeps names apart that would be the same once they are cut or rewritten.
func Digest(s string) string {
	return fmt.Sprintf("%.3x", sha256.Sum256([]byte(s)))
}

// Cut shortens a name to a length that a system takes, and keeps it apart from others.
func Cut(name string, length int) string {
	if len(name) <= length {
		return name
	}
	return name[:length-7] + "-" + Digest(name)
}
