package screen

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/test/testkit"
)

func TestTheNoteOnWaitingIsStopped(t *testing.T) {
	var waited time.Duration
	stopped := false
	var stderr bytes.Buffer
	terminal := New(genericiooptions.IOStreams{ErrOut: &stderr}, nil, func(d time.Duration, _ func()) func() bool {
		waited = d
		return func() bool { stopped = true; return true }
	})
	terminal.WaitingFor("something")()
	if waited != 2*time.Second || !stopped || stderr.Len() > 0 {
		t.Errorf("after %s, stopped %v, noted %q", waited, stopped, stderr.String())
	}
}

func TestGuard(t *testing.T) {
	const part = "abcdefghijklmnopqrstuvwxyz"
	signature := strings.Repeat("s", 64)
	for in, want := range map[string]string{
		"a eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.c2ln, b\n":   "a [redacted], b\n",
		"cut eyJhbGciOiJFUzI1NiJ9.eyJhI":                "cut [redacted]",
		"encrypted eyJhbGciOiJkaXIifQ..aXY.dGV4dA.dGFn": "encrypted [redacted]",
		// Key IDs, alone and as the names of files.
		"key abceyJabcdefghijklmnopqrstuvwxyz-0123456789, eyJabcdefghijklmnopqrstuvwxyz-0123456789_ABC, -eyJabcdefghijklmnopqrstuvwxyz0123456789_AB.pem.": "key abceyJabcdefghijklmnopqrstuvwxyz-0123456789, eyJabcdefghijklmnopqrstuvwxyz-0123456789_ABC, -eyJabcdefghijklmnopqrstuvwxyz0123456789_AB.pem.",
		"unusual " + part + "." + part + "." + signature: "unusual [redacted]",
		"https://identity.example.com:8443/path.html\n":  "https://identity.example.com:8443/path.html\n",
		"colour \x1b[31m, \r and \u202e\U000e0041":       `colour \u001b[31m, \u000d and \u202e\U000e0041`,
		"not UTF-8 \xff": "not UTF-8 \ufffd",
	} {
		var out bytes.Buffer
		n, err := (&guard{to: &out}).Write([]byte(in))
		if err != nil || n != len(in) || out.String() != want {
			t.Errorf("%q became %q (%d, %v), want %q", in, out.String(), n, err, want)
		}
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("error: eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.c2ln")
	f.Add("\x1b]0;title\x07 \u009b2J")
	f.Fuzz(func(t *testing.T, text string) {
		const token = "eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.c2lnbmF0dXJl"
		var out bytes.Buffer
		testkit.Must(t, testkit.Err((&guard{to: &out}).Write([]byte(text+token+text))))
		if strings.Contains(out.String(), token) {
			t.Errorf("a token passed: %q", out.String())
		}
		for _, r := range out.String() {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("control character %U passed", r)
			}
		}
	})
}

// own is a value with a JSON form of its own, in which the encoder of Go escapes signs of HTML.
type own struct{ Text string }

func (o own) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]string{"text": o.Text}) }

// The signs of HTML are printed as they are, whatever encoded them, and every other escape as it was.
func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		"kubectl label namespace <name> a=b && x > y": `kubectl label namespace <name> a=b && x > y`,
		`\u003c`:         `\\u003c`,
		`\\u003E`:        `\\\\u003E`,
		"\u2028 \t \" <": `\u2028 \t \" <`,
	} {
		for _, value := range []any{own{text}, map[string]string{"text": text}} {
			var out bytes.Buffer
			testkit.Must(t, JSON(&out, value))
			if out.String() != "{\n  \"text\": \""+want+"\"\n}\n" {
				t.Errorf("%T of %q is printed as %s", value, text, out.String())
			}
			var again own
			if err := json.Unmarshal(out.Bytes(), &again); err != nil || again.Text != text {
				t.Errorf("%s is read as %q (%v)", out.String(), again.Text, err)
			}
		}
	}
}

// FuzzInspect holds the printing of tokens to the rule that nothing in them reaches a terminal as a control character.
func FuzzInspect(f *testing.F) {
	f.Add(`{"sub":"a"}`)
	f.Add("{\"sub\":\"\u009b31m\x7f\u202e\",\t\"x\":[1.0e5,null]\r\n}")
	f.Fuzz(func(t *testing.T, object string) {
		text, err := Indented([]byte(object))
		if err != nil {
			return
		}
		for _, r := range text {
			if !unicode.IsPrint(r) && r != '\n' {
				t.Errorf("character %U passed", r)
			}
		}
		again, err := Indented([]byte(text))
		if err != nil || again != text {
			t.Errorf("printed twice: %q, then %q (%v)", text, again, err)
		}
	})
}
