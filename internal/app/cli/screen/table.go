package screen

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/wording"
)

// gap is the space between columns.
const gap = 3

// Table prints rows in aligned columns. Cells may come from a server: they are made printable, and of one line. At a terminal, wide cells are folded.
func Table(w io.Writer, rows ...[]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = wording.OneLine(cell)
		}
	}
	if IsTerminal(w) {
		rows = fold(rows, Columns)
	}
	table := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// Object prints an object of the API whole, as json or yaml.
func Object(w io.Writer, output string, object any) error {
	if output == "json" {
		return JSON(w, object)
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	_, err = io.WriteString(w, wording.Printable(string(text)))
	return err
}
