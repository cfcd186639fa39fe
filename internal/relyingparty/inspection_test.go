package relyingparty

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/test/testkit"
)

func TestInspect(t *testing.T) {
	header := `{"alg":"ES256","kid":"k","typ":"JWT"}`
	claims := `{"iss":"https://i","sub":"s","aud":"a","jti":"j","iat":1782907200,"nbf":1782907200.5,"exp":1782910800,"x":[1,{"y":null}]}`
	got := testkit.Need(Inspect(unsigned(header, claims)))(t)
	want := Inspection{
		Algorithm: "ES256", KeyID: "k", Issuer: "https://i", Subject: "s", ID: "j", Audience: []string{"a"},
		IssuedAt: testNow, NotBefore: testNow.Add(time.Second / 2), Expiry: testNow.Add(time.Hour),
		Header: []byte(header), Claims: []byte(claims),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Inspection{})); diff != "" {
		t.Errorf("inspection (-want +got):\n%s", diff)
	}
}

func TestInspectRefuses(t *testing.T) {
	const header, claims = `{"alg":"ES256"}`, `{"iss":"https://i"}`
	good := unsigned(header, claims)
	deep := strings.Repeat("[", strictjson.MaxDepth) + strings.Repeat("]", strictjson.MaxDepth)
	for name, test := range map[string]struct{ token, want string }{
		"empty":                {"", "the token is empty"},
		"too long":             {unsigned(header, `{"x":"`+strings.Repeat("a", MaxTokenLength)+`"}`), "at most 16384 are read"},
		"two parts":            {"e30.e30", "this one has 2"},
		"encrypted":            {"e30.e30.e30.e30.e30", "this one has 5"},
		"padding":              {strings.Replace(good, ".", "=.", 1), "decode the header of the token: illegal base64 data at input byte"},
		"line break":           {good + "\n", "decode the signature of the token: line break at position"},
		"line break inside":    {good[:4] + "\n" + good[4:], "decode the header of the token: line break at position 4"},
		"standard base64":      {"+" + good[1:], "decode the header of the token: illegal base64 data at input byte 0"},
		"signature":            {good + "*", "decode the signature of the token"},
		"bits after the end":   {"e31.e30.", "decode the header of the token: illegal base64"},
		"header not JSON":      {unsigned(`{"alg"`, claims), "read the header of the token: it is not JSON"},
		"header null":          {unsigned(`null`, claims), "read the header of the token: it is not a JSON object"},
		"no alg":               {unsigned(`{"Alg":"ES256"}`, claims), `read the header of the token: "alg" is missing`},
		"alg a number":         {unsigned(`{"alg":1}`, claims), `"alg" is not a string`},
		"kid null":             {unsigned(`{"alg":"a","kid":null}`, claims), `"kid" is not a string`},
		"claims an array":      {unsigned(header, `[]`), "read the claims of the token: it is not a JSON object"},
		"claims empty":         {unsigned(header, ``), "read the claims of the token: it is not JSON"},
		"trailing data":        {unsigned(header, `{} {}`), "read the claims of the token: it has data after the end"},
		"not UTF-8":            {unsigned(header, "{\"iss\":\"\xff\"}"), "read the claims of the token: it is not UTF-8"},
		"duplicate":            {unsigned(header, `{"aud":"a","aud":"b"}`), `it has the key "aud" twice`},
		"duplicate, escaped":   {unsigned(header, `{"aud":"a","\u0061ud":"b"}`), `it has the key "aud" twice`},
		"duplicate, deep":      {unsigned(header, `{"x":[{"y":{},"z":1,"y":2}]}`), `it has the key "y" twice`},
		"nested too deep":      {unsigned(header, `{"x":`+deep+`}`), "nested more than 32 levels deep"},
		"issuer a list":        {unsigned(header, `{"iss":["a"]}`), `"iss" is not a string`},
		"audience a number":    {unsigned(header, `{"aud":1}`), `"aud" is neither a string nor an array of strings`},
		"audience null":        {unsigned(header, `{"aud":null}`), `"aud" is neither`},
		"audience of numbers":  {unsigned(header, `{"aud":["a",1]}`), `"aud" is neither`},
		"expiry a string":      {unsigned(header, `{"exp":"1"}`), `"exp" is not a number`},
		"expiry null":          {unsigned(header, `{"exp":null}`), `"exp" is not a number`},
		"expiry beyond floats": {unsigned(header, `{"exp":1e999}`), `"exp" is not a number`},
		"expiry in year 10000": {unsigned(header, `{"exp":253402300800}`), `"exp" is not a time between`},
		"issued before 1970":   {unsigned(header, `{"iat":-1}`), `"iat" is not a time between`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Inspect(test.token)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want one with %q", err, test.want)
			}
		})
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(unsigned(`{"alg":"ES256","kid":"k"}`, `{"iss":"https://i","aud":["a"],"exp":1}`))
	f.Add(unsigned(`{"alg":"none"}`, `{"a":{"a":[{},[]],"b":"a"},"b":1}`))
	f.Add("e30.e30.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		got, err := Inspect(token)
		if err != nil {
			// A part of some length that shows up in the message would be the token leaking.
			for part := range strings.SplitSeq(token, ".") {
				if len(part) > 40 && strings.Contains(err.Error(), part) {
					t.Errorf("the error contains a part of the token: %v", err)
				}
			}
			return
		}
		again, err := Inspect(unsigned(string(got.Header), string(got.Claims)))
		testkit.Must(t, err, "the decoded token is refused when encoded again")
		if diff := cmp.Diff(got, again, cmp.AllowUnexported(Inspection{})); diff != "" {
			t.Errorf("decoded twice (-first +second):\n%s", diff)
		}
	})
}
