package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// shell quotes a value for a POSIX shell: between single quotes only the next one is special.
func shell(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }

// command is one command of a shell, an option in each line. The words are ours, the values of options are quoted.
func command(words string, options ...[2]string) string {
	lines := []string{words}
	for _, option := range options {
		lines = append(lines, "  "+option[0]+shell(option[1]))
	}
	return strings.Join(lines, " \\\n") + "\n"
}

// document is indented JSON. Characters of HTML stay as they are: they are compared byte for byte.
func document(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic(err) // maps and slices of strings always have a JSON form
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// object is a JSON object, or an HCL one, whose members keep their order.
type object []member

type member struct {
	name  string
	value any // string, []string, []object or object
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		for j, part := range []any{m.name, m.value} {
			if j > 0 {
				text.WriteByte(':')
			}
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(part); err != nil {
				return nil, err
			}
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// resourceName is a name of a Terraform resource for an identity: characters other than letters and digits become _.
func (i Identity) resourceName() string {
	return "credence_" + strings.NewReplacer("-", "_", ".", "_").Replace(i.Namespace+"_"+i.Name) + "_" + digest(i.Namespace+"/"+i.Name)
}

// sharedName is a name of Terraform for what the identities of an issuer share at a place, such as an account or a path: equal for all
// of them.
func (i Identity) sharedName(place string) string { return "credence_" + digest(i.Issuer+"\n"+place) }

// digest keeps names apart that would be the same once they are cut or rewritten.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:6]
}

// cut shortens a name to a length that a system takes, and keeps it apart from others.
func cut(name string, length int) string {
	if len(name) <= length {
		return name
	}
	return name[:length-7] + "-" + digest(name)
}
