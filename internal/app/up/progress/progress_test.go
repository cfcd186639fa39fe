package progress

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

// clock is turned by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// operate is an operation of two steps that overlap.
func operate(t *Tracker, c *clock) {
	first := t.Begin("tea", "boiling water")
	c.add(2 * time.Second)
	second := t.Begin("cake", "baking")
	c.add(500 * time.Millisecond)
	first("hot")
	t.Note("the cat is %s", "in")
	c.add(time.Second)
	second("done")
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &clock{}
	tracker := NewTracker(NewLines(&out), c.Now)
	operate(tracker, c)
	want := `   0.0s  … tea: boiling water
   2.0s  … cake: baking
   2.5s  ✓ tea: hot (2.5s)
   2.5s  - the cat is in
   3.5s  ✓ cake: done (1.5s)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	parts := []Part{{Name: "tea", Start: 0, Seconds: 2.5}, {Name: "cake", Start: 2, Seconds: 1.5}}
	if diff := cmp.Diff(parts, tracker.Parts()); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// list is a Sink that keeps what it is shown.
type list struct{ events []Event }

func (l *list) Show(event Event) { l.events = append(l.events, event) }

func TestAnotherProcessSeesTheSame(t *testing.T) {
	t.Parallel()
	for _, closing := range []What{Ready, Failed} {
		var pipe bytes.Buffer
		var here, there list
		c := &clock{}
		tracker := NewTracker(Sinks{&here, NewEncoder(&pipe)}, c.Now)
		operate(tracker, c)
		tracker.Close(closing, "that is all")
		last := testkit.Need(Decode(&pipe, &there))(t)
		if diff := cmp.Diff(here.events, append(there.events, last)); diff != "" {
			t.Errorf("events (-here +there):\n%s", diff)
		}
		if last.What != closing || last.Text != "that is all" {
			t.Errorf("the end is %+v", last)
		}
	}
}

func TestDecodeOfAnOperationThatWasKilled(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"nothing": "", "a whole event": `{"what":"note","text":"x"}` + "\n", "half an event": `{"what":"no`} {
		if _, err := Decode(strings.NewReader(text), &list{}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, want %v", name, err, io.ErrUnexpectedEOF)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"what":"begin","step":"a","at":1}` + "\n" + `{"what":"ready"}`))
	f.Add([]byte(`{"what":"failed","text":"x"`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		last, err := Decode(bytes.NewReader(text), NewLines(io.Discard))
		if err == nil && last.What != Ready && last.What != Failed {
			t.Errorf("%q ends well with %+v", text, last)
		}
	})
}

func TestTerminalShowsWhatRuns(t *testing.T) {
	t.Parallel()
	out := &safeBuffer{}
	c := &clock{}
	terminal := NewTerminal(out, c.Now)
	tracker := NewTracker(terminal, c.Now)
	operate(tracker, c)
	tracker.Begin("washing "+strings.Repeat("up ", 40), "plates")
	terminal.Close()
	text := out.String()
	for _, want := range []string{
		clearLine + "   2.0s  … tea, cake",
		clearLine + "   2.5s  ✓ tea: hot (2.5s)\n" + clearLine + "   2.5s  … cake",
		"   3.5s  ✓ cake: done (1.5s)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if !strings.HasSuffix(text, clearLine) {
		t.Errorf("the running line stays: %q", text)
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\n", clearLine), clearLine) {
		if len([]rune(line)) > width {
			t.Errorf("%q would wrap", line)
		}
	}
}

func TestFilesAndBuffersAreNoTerminals(t *testing.T) {
	t.Setenv("TERM", "xterm")
	file := testkit.Need(os.Create(t.TempDir() + "/x"))(t)
	defer func() { _ = file.Close() }()
	if IsTerminal(file) || IsTerminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer is taken for a terminal")
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestReasons(t *testing.T) {
	var shown bytes.Buffer
	c := &clock{}
	reason := NewTracker(NewLines(&shown), c.Now).Reasons("the cluster")
	for range 25 {
		c.add(time.Second)
		reason(errors.New("field not declared"))
	}
	if want := "  10.0s  - still waiting for the cluster: field not declared\n  20.0s  - still waiting for the cluster: field not declared\n"; shown.String() != want {
		t.Errorf("shown is\n%swant\n%s", &shown, want)
	}
}
