package trust

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// HCL quotes a value for Terraform. A template begins with ${ or %{: their first character is written by its number.
func HCL(value string) string {
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

// Reference is an expression of Terraform, not a value.
type Reference string

// hclValue writes a value as Terraform does.
func hclValue(value any, indent string) string {
	switch v := value.(type) {
	case Reference:
		return string(v)
	case string:
		return HCL(v)
	case []string:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = HCL(part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []Object:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = hclValue(part, indent)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Object:
		var quoted []Member
		for _, m := range v {
			quoted = append(quoted, Member{HCL(m.Name), m.Value})
		}
		return "{\n" + attributes(quoted, indent+"  ") + indent + "}"
	default:
		return fmt.Sprint(v) // numbers and booleans
	}
}

// Block is one block of Terraform: resource, data or variable. Its labels and the names of its members are ours.
func Block(kind string, labels []string, body ...Member) string {
	for _, label := range labels {
		kind += " " + HCL(label)
	}
	return kind + " {\n" + attributes(body, "  ") + "}\n"
}

// attributes writes members a line each, their equals signs below each other as terraform fmt has them; a value of several
// lines stands alone.
func attributes(members []Member, indent string) string {
	var text strings.Builder
	for len(members) > 0 {
		if inner, ok := members[0].Value.(Nested); ok {
			fmt.Fprintf(&text, "%s%s {\n%s%s}\n", indent, members[0].Name, attributes(inner, indent+"  "), indent)
			members = members[1:]
			continue
		}
		group, width := 0, 0
		for group < len(members) {
			_, block := members[group].Value.(Nested)
			several := !block && strings.Contains(hclValue(members[group].Value, indent), "\n")
			if block || several && group > 0 {
				break
			}
			width = max(width, utf8.RuneCountInString(members[group].Name))
			if group++; several {
				break
			}
		}
		for _, m := range members[:group] {
			padding := strings.Repeat(" ", width-utf8.RuneCountInString(m.Name))
			fmt.Fprintf(&text, "%s%s%s = %s\n", indent, m.Name, padding, hclValue(m.Value, indent))
		}
		members = members[group:]
	}
	return text.String()
}

// Nested is a block inside of another one.
type Nested []Member

// JSONEncode is a call of Terraform's function of that name.
func JSONEncode(value Object) Reference {
	return Reference("jsonencode(" + hclValue(value, "  ") + ")")
}
