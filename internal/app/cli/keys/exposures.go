package keys

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// printExposures prints for how long relying parties act on other keys than those of the ring.
func printExposures(w io.Writer, exposures []v1alpha1.Exposure, of func(v1alpha1.Exposure) string) error {
	rows := [][]string{{"  MODEL", "FOR UP TO", "RELYING PARTIES THAT"}}
	for _, e := range exposures {
		rows = append(rows, []string{"  " + e.Model, of(e), e.Parties})
	}
	return screen.Table(w, rows...)
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
	return !slices.ContainsFunc(exposures, func(e v1alpha1.Exposure) bool { return e.Unbounded || e.Duration.Duration > 0 })
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
