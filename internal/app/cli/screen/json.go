package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// JSON prints a value as JSON for programs, indented for people.
func JSON(w io.Writer, value any) error {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	text, err := Indented(plain.Bytes())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, text)
	return err
}

// Indented returns the same JSON for people, safe for terminals: without white space, characters that do not print can
// only stand inside of strings, where their escape means the same.
func Indented(object []byte) (string, error) {
	var compact, safe, text bytes.Buffer
	if err := json.Compact(&compact, object); err != nil {
		return "", fmt.Errorf("print JSON: %w", err)
	}
	for _, r := range compact.String() {
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
