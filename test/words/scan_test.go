package words

import (
	"bytes"
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// text is a piece of a file that a person reads: a comment, a string, a paragraph. Its lines are the lines of the file.
type text struct {
	path    string
	line    int
	content string
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// ofGo returns the comments and strings of a Go file. Line comments on consecutive lines are one text.
func ofGo(path string, content []byte) []text {
	if generated.Match(content) {
		return nil
	}
	var list []text
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	last := 0 // the line of the line comment before, 0: there is another token between
	for {
		at, kind, literal := s.Scan()
		line := file.Line(at)
		switch {
		case kind == token.EOF:
			return list
		case kind == token.COMMENT && strings.HasPrefix(literal, "//"):
			literal = strings.TrimPrefix(strings.TrimPrefix(literal, "//"), " ")
			if last > 0 && line == last+1 {
				list[len(list)-1].content += "\n" + literal
			} else {
				list = append(list, text{path, line, literal})
			}
			last = line
			continue
		case kind == token.COMMENT:
			list = append(list, text{path, line, literal})
		case kind == token.STRING:
			if value, err := strconv.Unquote(literal); err == nil {
				list = append(list, text{path, line, value})
			}
		}
		last = 0
	}
}

var (
	codeSpan  = regexp.MustCompile("`[^`]*`")
	blockMark = regexp.MustCompile(`^\s*(([-*+]|#+|[0-9]+\.)\s|[|>])`)
)

// plain returns a text without its code spans, in the same lines.
func plain(text string) string {
	return codeSpan.ReplaceAllStringFunc(text, func(span string) string { return "x" + strings.Repeat("\n", strings.Count(span, "\n")) })
}

// ofMarkdown returns the paragraphs, list items, headings and table cells of a document, without its code.
func ofMarkdown(path string, content []byte) []text {
	var list []text
	fenced, open := false, false // open: the text goes on in the next line
	for i, line := range strings.Split(string(content), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced, open = !fenced, false
			continue
		}
		if fenced || strings.TrimSpace(line) == "" {
			open = false
			continue
		}
		if strings.HasPrefix(line, "|") {
			for _, cell := range strings.Split(plain(line), "|") {
				list = append(list, text{path, i + 1, strings.TrimSpace(cell)})
			}
			open = false
			continue
		}
		if mark := blockMark.FindString(line); open && mark == "" {
			list[len(list)-1].content += "\n" + line
		} else {
			list = append(list, text{path, i + 1, strings.TrimSpace(strings.TrimPrefix(line, mark))})
		}
		open = true
	}
	for i := range list {
		list[i].content = plain(list[i].content)
	}
	return list
}

// ofScript returns the lines of a manifest or a script. Comments on consecutive lines are one text.
func ofScript(path string, content []byte) []text {
	var list []text
	comment := false
	for i, line := range strings.Split(string(bytes.TrimSpace(content)), "\n") {
		line, found := strings.CutPrefix(strings.TrimSpace(line), "#")
		if line = strings.TrimSpace(line); found && comment {
			list[len(list)-1].content += "\n" + line
		} else {
			list = append(list, text{path, i + 1, line})
		}
		comment = found
	}
	return list
}
