package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// shell quotes a value for a POSIX shell: nothing is special between single quotes but the next one.
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

// hcl quotes a value for Terraform. A template begins with ${ or %{: their first character is written by its number.
func hcl(value string) string {
	var text strings.Builder
	text.WriteByte('"')
	runes := []rune(value)
	for i, r := range runes {
		switch template := i+1 < len(runes) && runes[i+1] == '{'; {
		case r == '"' || r == '\\':
			text.WriteByte('\\')
			text.WriteRune(r)
		case (r == '$' || r == '%') && template, r < ' ':
			fmt.Fprintf(&text, `\u%04x`, r)
		default:
			text.WriteRune(r)
		}
	}
	text.WriteByte('"')
	return text.String()
}

// reference is an expression of Terraform, not a value.
type reference string

// hclValue writes a value as Terraform does.
func hclValue(value any, indent string) string {
	switch v := value.(type) {
	case reference:
		return string(v)
	case string:
		return hcl(v)
	case []string:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = hcl(part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []object:
		var text strings.Builder
		text.WriteString("[")
		for i, part := range v {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString(hclValue(part, indent))
		}
		return text.String() + "]"
	case object:
		var text strings.Builder
		text.WriteString("{\n")
		for _, m := range v {
			fmt.Fprintf(&text, "%s  %s = %s\n", indent, hcl(m.name), hclValue(m.value, indent+"  "))
		}
		return text.String() + indent + "}"
	default:
		return fmt.Sprint(v) // numbers and booleans
	}
}

// block is one block of Terraform: resource, data or variable. Its labels and the names of its members are ours.
func block(kind string, labels []string, body ...member) string {
	var text strings.Builder
	text.WriteString(kind)
	for _, label := range labels {
		text.WriteString(" " + hcl(label))
	}
	text.WriteString(" {\n")
	for _, m := range body {
		if inner, ok := m.value.(nested); ok {
			fmt.Fprintf(&text, "  %s {\n", m.name)
			for _, n := range inner {
				fmt.Fprintf(&text, "    %s = %s\n", n.name, hclValue(n.value, "    "))
			}
			text.WriteString("  }\n")
			continue
		}
		fmt.Fprintf(&text, "  %s = %s\n", m.name, hclValue(m.value, "  "))
	}
	return text.String() + "}\n"
}

// nested is a block inside of another one.
type nested []member

// jsonencode is a call of Terraform's function of that name.
func jsonencode(value object) reference {
	return reference("jsonencode(" + hclValue(value, "  ") + ")")
}

// resourceName is a name of a Terraform resource for an identity: what is no letter or digit becomes _.
func (i Identity) resourceName() string {
	return "credence_" + strings.NewReplacer("-", "_", ".", "_").Replace(i.Namespace+"_"+i.Name) + "_" + digest(i.Namespace+"/"+i.Name)
}

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
