package trust

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

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
		var quoted []member
		for _, m := range v {
			quoted = append(quoted, member{hcl(m.name), m.value})
		}
		return text.String() + attributes(quoted, indent+"  ") + indent + "}"
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
	return text.String() + " {\n" + attributes(body, "  ") + "}\n"
}

// attributes writes members a line each, their equals signs below each other as terraform fmt has them; a value of several
// lines stands alone.
func attributes(members []member, indent string) string {
	var text strings.Builder
	for len(members) > 0 {
		if inner, ok := members[0].value.(nested); ok {
			fmt.Fprintf(&text, "%s%s {\n%s%s}\n", indent, members[0].name, attributes(inner, indent+"  "), indent)
			members = members[1:]
			continue
		}
		group, width := 0, 0
		for group < len(members) {
			_, block := members[group].value.(nested)
			several := !block && strings.Contains(hclValue(members[group].value, indent), "\n")
			if block || several && group > 0 {
				break
			}
			width = max(width, utf8.RuneCountInString(members[group].name))
			if group++; several {
				break
			}
		}
		for _, m := range members[:group] {
			padding := strings.Repeat(" ", width-utf8.RuneCountInString(m.name))
			fmt.Fprintf(&text, "%s%s%s = %s\n", indent, m.name, padding, hclValue(m.value, indent))
		}
		members = members[group:]
	}
	return text.String()
}

// nested is a block inside of another one.
type nested []member

// jsonencode is a call of Terraform's function of that name.
func jsonencode(value object) reference {
	return reference("jsonencode(" + hclValue(value, "  ") + ")")
}
