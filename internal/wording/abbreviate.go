package wording

import "strings"

// Abbreviate returns the start of a text of others that a message repeats, in UTF-8.
func Abbreviate(text string) string { return AbbreviateTo(text, 64) }

// AbbreviateTo is Abbreviate with a number of characters.
func AbbreviateTo(text string, most int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
