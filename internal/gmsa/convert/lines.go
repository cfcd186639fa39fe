package convert

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// emptyLine is a comment that stands for an empty line on its way through the encoder, which would drop it.
const emptyLine = "#-credence-empty-line-"

// withPlaces is a text with comments for its empty lines, but for those at its end and within values of several lines.
func withPlaces(text string, root *yaml.Node) string {
	if strings.Contains(text, emptyLine) {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	within := valueLines(root, len(lines))
	indent := "" // of the next line that is not empty
	known := false
	for i := len(lines) - 1; i >= 0; i-- {
		if trimmed := strings.TrimSpace(lines[i]); trimmed != "" {
			indent, known = lines[i][:strings.Index(lines[i], trimmed)], !within[i+1]
			continue
		}
		if known && strings.HasSuffix(lines[i], "\n") {
			lines[i] = indent + emptyLine + "\n"
		}
	}
	return strings.Join(lines, "")
}

func withoutPlaces(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == emptyLine {
			lines[i] = "\n"
		}
	}
	return strings.Join(lines, "")
}

// valueLines are the lines after the first of a scalar, up to the one where the next value begins. Most have none.
func valueLines(root *yaml.Node, count int) map[int]bool {
	within := map[int]bool{}
	var last *yaml.Node
	reach := func(line int) {
		if last == nil {
			return
		}
		for i := last.Line + 1; i < line; i++ {
			within[i] = true
		}
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			reach(n.Line)
			last = nil
			if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || strings.Contains(n.Value, "\n") {
				last = n
			}
		}
		for _, content := range n.Content {
			walk(content)
		}
	}
	walk(root)
	reach(count + 1)
	return within
}

// keepsComments reports whether written has every comment of text.
func keepsComments(text, written string) bool {
	there := map[string]int{}
	for line := range strings.Lines(written) {
		if at := strings.Index(line, "#"); at >= 0 {
			there[strings.TrimSpace(line[at:])]++
		}
	}
	for line := range strings.Lines(text) {
		comment := strings.TrimSpace(line)
		if !strings.HasPrefix(comment, "#") || comment == emptyLine {
			continue
		}
		if there[comment] == 0 {
			return false
		}
		there[comment]--
	}
	return true
}
