package backup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// The backup just made stays, also if older ones have later names, and an empty one takes the place of none.
func TestPrune(t *testing.T) {
	const first, second, third, ahead = "credence-20260101T000000Z.backup", "credence-20260102T000000Z.backup", "credence-20260103T000000Z.backup", "credence-20990101T000000Z.backup"
	for name, c := range map[string]struct {
		made  string
		keep  int
		empty bool
		want  []string
		err   string
	}{
		"all":                  {made: third, want: []string{first, second, third, ahead}},
		"the new one alone":    {made: third, keep: 1, want: []string{third}},
		"one more":             {made: second, keep: 2, want: []string{second, ahead}},
		"as many as there are": {made: third, keep: 4, empty: true, want: []string{first, second, third, ahead}},
		"an empty one":         {made: third, keep: 1, empty: true, want: []string{first, second, third, ahead}, err: "the new backup has no identities"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for _, file := range []string{first, second, third, ahead, "another.backup"} {
				testkit.Must(t, os.WriteFile(filepath.Join(folder, file), nil, 0o600))
			}
			if err := prune(filepath.Join(folder, c.made), c.keep, c.empty); (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q", err, c.err)
			}
			entries := testkit.Need(os.ReadDir(folder))(t)
			var left []string
			for _, entry := range entries {
				left = append(left, entry.Name())
			}
			if want := append([]string{"another.backup"}, c.want...); !slices.Equal(left, want) {
				t.Errorf("left are %v, want %v", left, want)
			}
		})
	}
}
