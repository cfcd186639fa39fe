package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Result is what became of a text.
type Result struct {
	// Text is the new text. Documents in which nothing has moved are as they were, byte for byte.
	Text []byte
	// Objects counts those that have changed, and Moved the values in them.
	Objects, Moved int
	// PassedOver are the objects that mention gMSAs, of kinds whose pod template is not known.
	PassedOver []string
}

// conversion is a text on its way.
type conversion struct {
	to       Form
	result   Result
	problems []Problem
	moved    int

	// Of the document that it is at: the lines before it, and the nodes that it has in several places.
	base   int
	shared map[*yaml.Node]bool
}

func (c *conversion) problem(at *yaml.Node, path, reason, fix string) {
	c.problems = append(c.problems, Problem{Line: c.base + max(at.Line, 1), Column: max(at.Column, 1), Path: path, Reason: reason, Fix: fix})
}

// Text converts all pods and pod templates of a text of YAML or JSON documents. If there are problems, there is no result.
// It returns an error for text that is neither.
func Text(text []byte, to Form) (*Result, []Problem, error) {
	c := &conversion{to: to}
	var out bytes.Buffer
	for _, part := range split(text) {
		out.WriteString(part.separator)
		c.base = part.line
		converted, err := c.document(part.text)
		if err != nil {
			return nil, nil, err
		}
		out.WriteString(converted)
	}
	if len(c.problems) > 0 {
		return nil, c.problems, nil
	}
	c.result.Text, c.result.Moved = out.Bytes(), c.moved
	return &c.result, nil, nil
}

// part is a document, with the separator before it and the number of lines before the document.
type part struct {
	separator, text string
	line            int
}

var separator = regexp.MustCompile(`^---[ \t]*(#[^\r\n]*)?\r?\n?$`)

// split cuts a text at lines of ---. Such a line is never within a value.
func split(text []byte) []part {
	parts := []part{{}}
	for i, line := range strings.SplitAfter(string(text), "\n") {
		if separator.MatchString(line) {
			parts = append(parts, part{separator: line, line: i + 1})
			continue
		}
		parts[len(parts)-1].text += line
	}
	return parts
}

// document converts one document. Empty lines are kept by something that holds their places, unless that changes what is read.
func (c *conversion) document(text string) (string, error) {
	if plain := strings.ReplaceAll(text, "\r\n", "\n"); plain != text { // the decoder loses comments before such line breaks
		written, err := c.document(plain)
		if err != nil || written == plain {
			return text, err
		}
		return strings.ReplaceAll(written, "\n", "\r\n"), nil
	}
	plain, more, err := read(text)
	if err != nil {
		return "", fmt.Errorf("it is neither YAML nor JSON: %s", c.words(err))
	}
	if plain == nil {
		return text, nil
	}
	before, spaced := *c, withPlaces(text, plain)
	written, changed, err := c.rewrite(text, text, plain)
	if len(c.problems) > len(before.problems) || err == nil && !changed {
		return text, nil
	}
	if more {
		return "", fmt.Errorf("the document that begins after line %d is followed by another in a manner that cannot be kept: put --- on a line of its own between them", c.base)
	}
	if spaced != text {
		after := *c
		*c = before
		if root, _, err := read(spaced); err == nil && root != nil {
			if better, _, err := c.rewrite(text, spaced, root); err == nil {
				return better, nil
			}
		}
		*c = after
	}
	return written, err
}

// read reads the first document of a text; nil if it is empty. more reports whether others follow.
func read(text string) (root *yaml.Node, more bool, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	root = new(yaml.Node)
	if err := decoder.Decode(root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, false, nil
		}
		return nil, false, err
	}
	err = decoder.Decode(new(yaml.Node))
	return root, !errors.Is(err, io.EOF), nil
}

// rewrite converts a document that was read from source: the text itself, or the text with placeholders for empty lines. The
// result is read again: it must mean the same and have every comment.
func (c *conversion) rewrite(text, source string, root *yaml.Node) (written string, changed bool, err error) {
	var was, want, got any
	unreadable := root.Decode(&was) // such as for a key that stands there twice
	c.shared = sharedNodes(root)
	objects := c.object(root.Content[0], 0)
	if objects == 0 {
		return text, false, nil
	}
	c.result.Objects += objects
	if err := cmp.Or(unreadable, root.Decode(&want)); err != nil {
		return "", true, errors.New(c.words(err))
	}
	if json.Valid([]byte(text)) {
		written, err = asJSON(text, root)
	} else {
		written, err = asYAML(root)
	}
	if err == nil {
		err = yaml.Unmarshal([]byte(written), &got)
	}
	if err != nil || !reflect.DeepEqual(got, want) || !keepsComments(source, written) {
		return "", true, fmt.Errorf("the document that begins after line %d is written in a manner that cannot be kept: simplify it, such as by taking comments out of lists and lines", c.base)
	}
	return withoutPlaces(written), true, nil
}

var lineNumber = regexp.MustCompile(`\bline (\d+)\b`)

// words is the message of a decoder's error, on one line, with lines counted in the whole text.
func (c *conversion) words(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ")
	text = strings.ReplaceAll(text, "\n  ", "; ")
	return lineNumber.ReplaceAllStringFunc(text, func(found string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(found, "line "))
		return fmt.Sprintf("line %d", c.base+n)
	})
}
