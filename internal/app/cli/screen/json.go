package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
)

// JSON prints a value as JSON for programs, indented for people.
func JSON(w io.Writer, value any) error {
	plain, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	text, err := Indented(plain)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, text)
	return err
}

// escape matches one escape of a string in JSON.
var escape = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// unescape returns the sign that an escape for HTML is for, and every other escape as it is.
func unescape(text string) string {
	switch strings.ToLower(text) {
	case `\u003c`:
		return "<"
	case `\u003e`:
		return ">"
	case `\u0026`:
		return "&"
	}
	return text
}

// Indented returns the same JSON for people, safe for terminals: without white space, characters that do not print can
// only stand inside of strings, where their escape means the same. <, > and & are printed as they are, whichever encoder has escaped them for
// pages of HTML.
func Indented(object []byte) (string, error) {
	var compact, safe, text bytes.Buffer
	if err := json.Compact(&compact, object); err != nil {
		return "", fmt.Errorf("print JSON: %w", err)
	}
	for _, r := range escape.ReplaceAllStringFunc(compact.String(), unescape) {
		if unicode.IsPrint(r) {
			safe.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&safe, `\u%04x`, unit)
		}
	}
	if err := json.Indent(&text, safe.Bytes(), "", "  "); err != nil {
		return "", fmt.Errorf("print JSON: %w", err)
	}
	return text.String(), nil
}
