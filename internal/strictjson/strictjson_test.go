package strictjson_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/strictjson"
)

// readers are the ways to read, with the packages that have each.
var readers = []struct {
	name, users string
	read        func(text string) error
}{
	{"strict", "discovery, externalsigner, externalsigner/service, gmsa, relyingparty, apiserver/registry/workloadidentity", func(text string) error {
		_, err := strictjson.Object([]byte(text))
		return err
	}},
	{"repeats", "gmsa/lint, target", func(text string) error {
		_, err := strictjson.Members([]byte(text), strictjson.Repeats)
		return err
	}},
	{"any bytes", "keyring/keys", func(text string) error {
		_, err := strictjson.Members([]byte(text), strictjson.AnyBytes)
		return err
	}},
	{"known", "externalsigner (the ledger), credential", func(text string) error {
		var into struct {
			A json.RawMessage `json:"a"`
			B json.RawMessage `json:"b"`
		}
		return strictjson.Known([]byte(text), &into)
	}},
}

func nested(levels int) string {
	return `{"a":` + strings.Repeat("[", levels-1) + "1" + strings.Repeat("]", levels-1) + "}"
}

// These inputs were judged differently by readers that each had code of their own. Documents that are stored, and credential
// specs, are accepted as before or more widely: the ring (any bytes), the ledger and kubeconfigs (known), documents of
// discovery and credential specs (strict, of more levels).
func TestWhatReadersJudgedDifferently(t *testing.T) {
	for _, c := range []struct {
		name, text string
		before     string // which readers accepted it, and which did not
		accept     []string
	}{
		{"not UTF-8", "{\"a\":\"\xff\"}",
			"accepted as U+FFFD by the signer's header, target, patches of a providerConfig, keyring/keys, the ledger and credential; of these, header, target and ledger refused the value",
			[]string{"any bytes", "known"}},
		{"a key twice", `{"a":1,"a":2}`,
			"accepted, the last counts, by the ledger and credential; reported by lint and target beside other faults; refused by the others",
			[]string{"repeats", "known"}},
		{"a key twice in two spellings", `{"a":1,"\u0061":2}`,
			"the same",
			[]string{"repeats", "known"}},
		{"a key twice below", `{"a":{"b":1,"b":2}}`,
			"accepted also by externalsigner/service, of claims that it does not check; keyring/keys refused it where it reads the entry",
			[]string{"repeats", "known"}},
		{"two halves of characters as keys", `{"\ud800":1,"\udfff":2}`,
			"the same key to all readers, who refused or reported it; no such field to target, the ledger and credential",
			[]string{"repeats"}},
		{"a key in another case", `{"A":1}`,
			"accepted for the field by the ledger and credential; another key for the others",
			[]string{"strict", "repeats", "any bytes"}},
		{"17 levels", nested(17),
			"refused by discovery, whose limit was 16",
			[]string{"strict", "repeats", "any bytes", "known"}},
		{"a number in 32 levels", nested(32),
			"refused by discovery, and by lint, which counted the number as a level",
			[]string{"strict", "repeats", "any bytes", "known"}},
		{"33 levels", nested(33),
			"accepted by externalsigner/service, the ledger and credential (10000); keyring/keys and target had no limit, and refused the value",
			[]string{"known"}},
		{"data after it", `{"a":1}{}`,
			"accepted by credential, to which a part of a document is given, which has nothing after it",
			nil},
		{"a large number", `{"a":1e999}`,
			"refused by the signer's header alone, which has strings alone",
			[]string{"strict", "repeats", "any bytes", "known"}},
	} {
		for _, r := range readers {
			if err := r.read(c.text); (err == nil) != slices.Contains(c.accept, r.name) {
				t.Errorf("%s, read as %s by %s: %v (before: %s)", c.name, r.name, r.users, err, c.before)
			}
		}
	}
}

// Names count in their case, on every level, as they do for the decoders of Kubernetes.
func TestKnownSpelling(t *testing.T) {
	type inner struct {
		Audience string `json:"audience"`
	}
	type Embedded struct {
		Issuer string `json:"issuer,omitempty"`
	}
	type outer struct {
		Embedded
		Plain  string
		Bytes  []byte           `json:"bytes"`
		One    *inner           `json:"one"`
		List   []inner          `json:"list"`
		ByName map[string]inner `json:"byName"`
		Raw    json.RawMessage  `json:"raw"`
		At     time.Time        `json:"at"`
	}
	for text, want := range map[string]string{
		`{"Plain":"a","bytes":"YQ==","issuer":"i","one":{"audience":"a"},"list":[{"audience":"a"}],"byName":{"AUDIENCE":{"audience":"a"}},"raw":{"Audience":1},"at":"2026-01-02T03:04:05Z"}`: "",
		`{"one":null,"list":null,"byName":null}`: "",
		`{"plain":"a"}`:                          `has the field "plain", which is spelt "Plain"`,
		`{"Issuer":"a"}`:                         `has the field "Issuer", which is spelt "issuer"`,
		`{"one":{"Audience":"a"}}`:               `has the field "Audience", which is spelt "audience"`,
		`{"list":[{},{"AUDIENCE":"a"}]}`:         `has the field "AUDIENCE", which is spelt "audience"`,
		`{"byName":{"x":{"audiencE":"a"}}}`:      `has the field "audiencE", which is spelt "audience"`,
		`{"issuer":"a","ISSUER":"b"}`:            `has the field "ISSUER", which is spelt "issuer"`,
		`{"unheard":1}`:                          `json: unknown field "unheard"`,
	} {
		got := ""
		if err := strictjson.Known([]byte(text), &outer{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	deep := strings.Repeat("[", strictjson.MaxDepth)
	for text, want := range map[string]struct {
		fault strictjson.Fault
		at    int
		text  string
	}{
		``:                    {strictjson.Syntax, 0, "is not JSON: unexpected EOF, at byte 0"},
		`[`:                   {strictjson.Syntax, 1, "is not JSON: unexpected EOF, at byte 1"},
		`{"a": `:              {strictjson.Syntax, 6, "is not JSON: unexpected EOF, at byte 6"},
		`{"a":1,}`:            {strictjson.Syntax, 7, "is not JSON: invalid character '}'"},
		`{1:2}`:               {strictjson.Syntax, 1, "is not JSON: "},
		`{"a" "b"}`:           {strictjson.Syntax, 5, "is not JSON: "},
		`[1}`:                 {strictjson.Syntax, 2, "is not JSON: "},
		` {} {}`:              {strictjson.Trailing, 4, "has data after the end"},
		`{}x`:                 {strictjson.Trailing, 2, "has data after the end"},
		`{}]`:                 {strictjson.Trailing, 2, "has data after the end"},
		`{"a":{"b":1,"b":2}}`: {strictjson.Repeat, 12, `has the key "b" twice, at byte 12`},
		"\"\xc3\"":            {strictjson.Encoding, 0, "is not UTF-8"},
		deep + "[":            {strictjson.Depth, 32, "is nested more than 32 levels deep"},
		` ["a"]`:              {strictjson.Type, 1, "is not a JSON object"},
		`null`:                {strictjson.Type, 0, "is not a JSON object"},
		`"{"`:                 {strictjson.Type, 0, "is not a JSON object"},
	} {
		_, err := strictjson.Members([]byte(text))
		var got *strictjson.Error
		if !errors.As(err, &got) || got.Fault != want.fault || got.At != want.at || !strings.HasPrefix(err.Error(), want.text) {
			t.Errorf("%q: %v (%+v), want %+v", text, err, got, want)
		}
	}
	for _, text := range []string{deep + strings.Repeat("]", strictjson.MaxDepth), `{"a":[{"b":null},1.5e300,"\u00e9"]} ` + "\n", `"x"`} {
		if err := strictjson.Check([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMembers(t *testing.T) {
	got, err := strictjson.Members([]byte(" {\"b\" : [1, {\"c\":2} ] ,\n\"a\":\"x\",\"b\":null}"), strictjson.Repeats)
	want := []strictjson.Member{{Name: "b", Value: json.RawMessage(`[1, {"c":2} ]`)}, {Name: "a", Value: json.RawMessage(`"x"`)}, {Name: "b", Value: json.RawMessage(`null`)}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for value, want := range map[string][]string{`["a","b"]`: {"a", "b"}, `[]`: {}, `["a",1]`: nil, `null`: nil, `"a"`: nil, ``: nil, `[null]`: nil} {
		if got, ok := strictjson.Texts(json.RawMessage(value)); !cmp.Equal(want, got) || ok != (want != nil) {
			t.Errorf("%s: %q, %v", value, got, ok)
		}
	}
	for _, value := range []string{"", "null", "1", `["a"]`} {
		if text, ok := strictjson.Text(json.RawMessage(value)); ok {
			t.Errorf("%s is read as %q", value, text)
		}
	}
}

func TestEncode(t *testing.T) {
	if text, err := strictjson.Encode(map[string]any{"b": "<&>\u2028", "a": []int{1}}); string(text) != `{"a":[1],"b":"<&>\u2028"}` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := strictjson.Encode(func() {}); err == nil {
		t.Errorf("a function is %s", text)
	}
}

// Whatever is accepted has one reading: that of encoding/json, in which nothing was left out.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[{"c":"\u00e9"}]}`, `{"a":1,"a":2}`, `{"a" : -0.5e+7 , "b":{}}`, `{,}`, `{"a":01}`, "{\"a\":\"\xff\"}", `[`, ` {} `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := strictjson.Object(data)
		if err != nil {
			var fault *strictjson.Error
			if !errors.As(err, &fault) || fault.At < 0 || fault.At > len(data) {
				t.Fatalf("%q: %#v", data, err)
			}
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q was accepted: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", data, diff)
		}
	})
}
