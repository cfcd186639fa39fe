package inorder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/inorder"
)

var errDown = errors.New("connection refused")

// one is a source whose tokens are numbered. Unkept: it always has the same, as a file has.
type one struct {
	name         string
	unkept       bool
	issued, life int // hours
	err          error
	now          func() time.Time
}

func (o *one) Key() map[string]string {
	if o.unkept {
		return nil
	}
	return map[string]string{"source": o.name}
}

func (o *one) Obtain(context.Context, credential.Request) (credential.Credential, json.RawMessage, error) {
	if o.err != nil {
		return credential.Credential{}, nil, o.err
	}
	if !o.unkept || o.issued == 0 {
		o.issued++
	}
	c := credential.Credential{Token: credential.NewSecret(fmt.Sprintf("%s-%d", o.name, o.issued))}
	if o.life > 0 {
		c.Expires = o.now().Add(time.Duration(o.life) * time.Hour)
	}
	return c, nil, nil
}

// world is a client, by its number, of sources in order.
type world struct {
	t       *testing.T
	folder  string
	now     time.Time
	sources []*one
	server  string
	notices []string
}

func newWorld(t *testing.T, sources ...*one) *world {
	w := &world{t: t, folder: filepath.Join(t.TempDir(), "cache"), now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), sources: sources, server: "https://a"}
	for _, source := range sources {
		source.now = func() time.Time { return w.now }
	}
	return w
}

func (w *world) Notice(format string, args ...any) {
	w.notices = append(w.notices, fmt.Sprintf(format, args...))
}

func (*world) OpenURL(string) error { return errors.New("no browser") }

func (w *world) ask(client int) (string, error) {
	w.now = w.now.Add(time.Second)
	source := &inorder.Source{Server: w.server, Now: func() time.Time { return w.now }}
	for _, o := range w.sources {
		source.Parts = append(source.Parts, inorder.Part{Source: o, Name: o.name, ID: o.name, Login: []string{"login", o.name}, Provider: credential.Provider{Folder: w.folder, Now: source.Now}})
	}
	provider := credential.Provider{
		Folder: w.folder, Now: source.Now, Terminal: w, Margin: -1, Alternatives: len(w.sources) - 1,
		Caller: credential.Caller{PID: client, Started: "1", Program: "p"},
	}
	info := credential.ExecInfo{APIVersion: credential.V1, FromClient: true, Cluster: &credential.Cluster{Server: w.server}}
	got, err := provider.Serve(w.t.Context(), source, info)
	return got.Token.Reveal(), err
}

func (w *world) want(client int, want string) {
	w.t.Helper()
	if got, err := w.ask(client); err != nil || got != want {
		w.t.Errorf("client %d is served %q, %v; want %q", client, got, err, want)
	}
}

// The same client requests again before the expiry: the server refused the credential.
func TestTheNextOneAfterARefusal(t *testing.T) {
	w := newWorld(t, &one{name: "a", life: 1}, &one{name: "b", life: 1}, &one{name: "c", life: 1})
	w.want(1, "a-1")
	w.want(2, "a-1")
	w.want(1, "b-1")
	w.want(3, "b-1") // others need not be refused as well
	w.want(1, "c-1") // at once
	w.want(4, "c-1")
	if w.sources[0].issued+w.sources[1].issued+w.sources[2].issued != 3 {
		t.Error("a source was called in vain")
	}
	// All were refused: the first one again, with another credential, and then a pause.
	w.want(1, "a-2")
	w.want(1, "a-2")
	if last := w.notices[len(w.notices)-1]; !strings.Contains(last, "the server seems to refuse this credential") {
		t.Errorf("notices: %q", w.notices)
	}
	w.now = w.now.Add(11 * time.Second)
	w.want(1, "b-2")
	// Another server has refused nothing.
	w.server = "https://b"
	w.want(1, "a-2")
}

// A source that was refused comes last for a day, also when the other one is renewed.
func TestARefusalLastsADay(t *testing.T) {
	w := newWorld(t, &one{name: "a", life: 1}, &one{name: "b", life: 1})
	w.want(1, "a-1")
	w.want(1, "b-1")
	for n := 2; n < 10; n++ {
		w.now = w.now.Add(time.Hour)
		w.want(n, fmt.Sprintf("b-%d", n))
	}
	w.sources[1].err = errDown
	w.now = w.now.Add(time.Hour)
	w.want(20, "a-2")
	w.sources[1].err = nil
	w.now = w.now.Add(25 * time.Hour)
	w.want(30, "a-3")
}

// A file that another program renews is tried again with its new token; the same token is not given twice.
func TestARefusedFile(t *testing.T) {
	file := &one{name: "file", unkept: true}
	w := newWorld(t, file, &one{name: "b", life: 1})
	w.want(1, "file-1")
	w.want(1, "b-1")
	w.sources[1].err = errDown
	w.now = w.now.Add(2 * time.Hour)
	_, err := w.ask(2)
	if err == nil || !strings.Contains(err.Error(), "b: connection refused; file: refused: the server refused its credential, and it has no other") {
		t.Errorf("got %v", err)
	}
	file.issued = 2
	w.now = w.now.Add(time.Minute)
	w.want(3, "file-2")
}

func TestFailures(t *testing.T) {
	person, refused := fmt.Errorf("log in: %w", credential.ErrNeedsPerson), fmt.Errorf("%w: no", credential.ErrRefused)
	for name, c := range map[string]struct {
		errs   []error
		is     error
		not    []error
		served string
	}{
		"the second works":      {errs: []error{errDown, nil, nil}, served: "b-1"},
		"the last works":        {errs: []error{person, refused, nil}, served: "c-1"},
		"all refuse":            {errs: []error{refused, refused, refused}, is: credential.ErrRefused, not: []error{credential.ErrNeedsPerson}},
		"one does not answer":   {errs: []error{refused, errDown, refused}, not: []error{credential.ErrRefused, credential.ErrNeedsPerson}},
		"one needs a person":    {errs: []error{refused, person, errDown}, is: credential.ErrNeedsPerson, not: []error{credential.ErrRefused}},
		"none of them answered": {errs: []error{errDown, errDown, errDown}, not: []error{credential.ErrRefused, credential.ErrNeedsPerson}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &one{name: "a", life: 1, err: c.errs[0]}, &one{name: "b", life: 1, err: c.errs[1]}, &one{name: "c", life: 1, err: c.errs[2]})
			if c.served != "" {
				w.want(1, c.served)
				if !slices.Contains(w.notices, fmt.Sprintf("a: %v; %s is taken instead", c.errs[0], c.served[:1])) {
					t.Errorf("notices: %q", w.notices)
				}
				return
			}
			_, err := w.ask(1)
			if c.is != nil && !errors.Is(err, c.is) || slices.ContainsFunc(c.not, func(not error) bool { return errors.Is(err, not) }) {
				t.Errorf("class of %v", err)
			}
			for i, one := range []string{"a", "b", "c"} {
				if !strings.Contains(err.Error(), fmt.Sprintf("%s: %v", one, c.errs[i])) {
					t.Errorf("the reason of %s is not in %v", one, err)
				}
			}
			var all *inorder.Error
			if !errors.As(err, &all) || (all.Login() != nil) != errors.Is(err, credential.ErrNeedsPerson) {
				t.Errorf("login %q", all.Login())
			}
			// It recovers.
			w.sources[2].err = nil
			w.now = w.now.Add(time.Hour)
			w.want(2, "c-1")
		})
	}
}
