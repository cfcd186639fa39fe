package screen

import (
	"strings"
	"unicode/utf8"
)

// Columns is how wide tables and texts are at a terminal. Programs read whole lines.
const Columns = 100

// Fold breaks a text into lines of at most width characters, at a space where there is one.
func Fold(text string, width int) []string {
	var lines []string
	for utf8.RuneCountInString(text) > width {
		head := string([]rune(text)[:width])
		at := strings.LastIndex(head, " ")
		if strings.HasPrefix(text[len(head):], " ") || at <= 0 {
			at = len(head)
		}
		lines, text = append(lines, text[:at]), strings.TrimLeft(text[at:], " ")
	}
	return append(lines, text)
}

// fold gives rows of a table lines of their own where cells are folded, so that the table has a width: the widest columns are folded first, and no word
// is broken. A table that is too wide all the same stays as it is.
func fold(rows [][]string, width int) [][]string {
	var widths, words []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, words = append(widths, 0), append(words, 1)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			for word := range strings.FieldsSeq(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
	}
	for total := -gap; ; total = -gap {
		widest := -1
		for i, w := range widths {
			total += gap + w
			if w > words[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if total <= width {
			break
		}
		if widest < 0 {
			return rows
		}
		widths[widest]--
	}
	var folded [][]string
	for _, row := range rows {
		first := len(folded)
		for i, cell := range row {
			for n, line := range Fold(cell, max(widths[i], 1)) {
				if first+n == len(folded) {
					folded = append(folded, make([]string, len(row)))
				}
				folded[first+n][i] = line
			}
		}
	}
	return folded
}
