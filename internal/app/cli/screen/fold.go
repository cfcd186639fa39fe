package screen

import (
	"strings"
	"unicode/utf8"
)

// Columns is how wide tables and texts are at a terminal. Programs read whole lines.
const Columns = 100

// narrowest is the width below which no column of a table is folded.
const narrowest = 14

// Fold breaks a text into lines of at most width characters, at a space or behind a comma or slash where there is one.
func Fold(text string, width int) []string {
	var lines []string
	for utf8.RuneCountInString(text) > width {
		head := string([]rune(text)[:width])
		at := max(strings.LastIndexAny(head, ",/")+1, strings.LastIndex(head, " "))
		if strings.HasPrefix(text[len(head):], " ") || at <= 0 {
			at = len(head)
		}
		lines, text = append(lines, text[:at]), strings.TrimLeft(text[at:], " ")
	}
	return append(lines, text)
}

// fold gives rows of a table lines of their own where cells are folded, so that the table has a width: the widest columns are folded first.
func fold(rows [][]string, width int) [][]string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for total := -gap; ; total = -gap {
		widest := 0
		for i, w := range widths {
			total += gap + w
			if w > widths[widest] {
				widest = i
			}
		}
		if total <= width || widths[widest] <= narrowest {
			break
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
