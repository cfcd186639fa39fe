package convert

import "testing"

func TestKeepsComments(t *testing.T) {
	const text = "# a\nb: c # d\n  # a\n" + emptyLine + "\n"
	for written, want := range map[string]bool{
		"b: c\n    # a\n# a\n": true,
		"# a\nb: c # a\n":      true,
		"# a\nb: c\n":          false,
		"# a\n# a, too\n":      false,
		"":                     false,
	} {
		if got := keepsComments(text, written); got != want {
			t.Errorf("%q: %v, want %v", written, got, want)
		}
	}
}

func TestEmptyLines(t *testing.T) {
	const text = "\na: |\n  b\n\n  c\n\nd:\n  - e\n\n  - \"f\n\n    g\"\n\n"
	root, _, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	spaced := withPlaces(text, root)
	const want = emptyLine + "\na: |\n  b\n\n  c\n" + emptyLine + "\nd:\n  - e\n  " + emptyLine + "\n  - \"f\n\n    g\"\n\n"
	if spaced != want {
		t.Errorf("places: %q, want %q", spaced, want)
	}
	if back := withoutPlaces(spaced); back != text {
		t.Errorf("back: %q, want %q", back, text)
	}
}
