package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// row is ours beside a peer's, in the same unit.
type row struct {
	what, unit string
	ours       float64
	peer       string
	theirs     float64
	target     target
}

// target is what the ratio should be; the zero value sets no limit.
type target struct {
	limit        float64
	asked, least bool
}

func atMost(ratio float64) target  { return target{limit: ratio, asked: true} }
func atLeast(ratio float64) target { return target{limit: ratio, asked: true, least: true} }

// table is what is printed.
type table struct {
	about string
	rows  []row
}

func (t *table) add(r row) { t.rows = append(t.rows, r) }

// verdict is the limit of a ratio, and whether the ratio meets it.
func (t target) verdict(ratio float64) string {
	switch {
	case !t.asked:
		return ""
	case t.least && ratio >= t.limit:
		return fmt.Sprintf("≥ %g: met", t.limit)
	case t.least:
		return fmt.Sprintf("≥ %g: MISSED", t.limit)
	case ratio <= t.limit:
		return fmt.Sprintf("≤ %g: met", t.limit)
	default:
		return fmt.Sprintf("≤ %g: MISSED", t.limit)
	}
}

var header = []string{"", "ours", "peer's", "peer", "ratio", "target"}

func (r row) cells() []string {
	unit := r.unit
	if unit != "" {
		unit = " " + unit
	}
	ratio := r.ours / r.theirs
	return []string{r.what, number(r.ours) + unit, number(r.theirs) + unit, r.peer, fmt.Sprintf("%.2f", ratio), r.target.verdict(ratio)}
}

// number writes three digits that mean something.
func number(value float64) string {
	if value == 0 || math.IsInf(value, 0) || math.IsNaN(value) {
		return fmt.Sprint(value)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(value)))))
	return fmt.Sprintf("%.*f", min(digits, 3), value)
}

// text is the table for a terminal.
func (t *table) text() string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", t.about)
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, cells := range t.cells() {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush()
	return out.String()
}

// markdown is the table for a document.
func (t *table) markdown() string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", t.about)
	for i, cells := range t.cells() {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintln(&out, "|---|--:|--:|---|--:|---|")
		}
	}
	return out.String()
}

func (t *table) cells() [][]string {
	lines := [][]string{header}
	for _, r := range t.rows {
		lines = append(lines, r.cells())
	}
	return lines
}
