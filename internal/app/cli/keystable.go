package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// printTable prints rows in aligned columns. Cells may come from a server: they are made printable, and of one line.
func printTable(w io.Writer, rows ...[]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// oneLine is printable text that stays in its line and cell.
func oneLine(s string) string {
	return printable(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s))
}

// instant words a time as moment does, in UTC, or missing without one.
func instant(t *metav1.Time, now time.Time, missing string) string {
	if t == nil || t.IsZero() {
		return missing
	}
	return moment(t.UTC(), now)
}

// age words a time by its distance alone, such as 5m ago.
func age(t *metav1.Time, now time.Time) string {
	switch {
	case t == nil || t.IsZero():
		return "-"
	case t.Time.Before(now):
		return duration.HumanDuration(now.Sub(t.Time)) + " ago"
	default:
		return "in " + duration.HumanDuration(t.Time.Sub(now))
	}
}

// printExposures prints for how long relying parties act on other keys than those of the ring.
func printExposures(w io.Writer, exposures []v1alpha1.Exposure, of func(v1alpha1.Exposure) string) error {
	rows := [][]string{{"  MODEL", "FOR UP TO", "RELYING PARTIES THAT"}}
	for _, e := range exposures {
		rows = append(rows, []string{"  " + e.Model, of(e), e.Parties})
	}
	return printTable(w, rows...)
}

// refused words for how long valid tokens may be refused.
func refused(e v1alpha1.Exposure) string {
	switch {
	case e.Unbounded:
		return "until an admin gives it to them"
	case e.Duration.Duration <= 0:
		return "not at all"
	default:
		return period(e.Duration.Duration)
	}
}

// accepted words for how long tokens of a revoked key may be accepted.
func accepted(e v1alpha1.Exposure) string {
	switch {
	case e.Unbounded && e.Duration.Duration <= 0:
		return "until an admin removes the key there"
	case e.Unbounded:
		return period(e.Duration.Duration) + "; those of a thief until an admin removes the key there"
	case e.Duration.Duration <= 0:
		return "not at all"
	default:
		return period(e.Duration.Duration)
	}
}

// none reports whether no relying party is concerned.
func none(exposures []v1alpha1.Exposure) bool {
	for _, e := range exposures {
		if e.Unbounded || e.Duration.Duration > 0 {
			return false
		}
	}
	return true
}

// period words a duration exactly, as Go does, without the units that are zero at its end: 28h1m.
func period(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// printObject prints an object of the API whole, as json or yaml.
func printObject(w io.Writer, output string, object any) error {
	if output == "json" {
		return printJSON(w, object)
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	_, err = io.WriteString(w, printable(string(text)))
	return err
}
