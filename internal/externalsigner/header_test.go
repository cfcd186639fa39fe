package externalsigner

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a signer writes as a header, an accepted one is read alike by every other parser.
func FuzzParseHeader(f *testing.F) {
	for _, seed := range []string{
		`{"alg":"ES256","kid":"a","typ":"JWT"}`, `{"alg":"RS256","kid":"a","typ":"JWT","crit":["x"]}`,
		`{"alg":"none","alg":"RS256","kid":"a","typ":"JWT"}`, `{"ALG":"RS256","kid":"a","typ":"JWT"}`, `{}`, `[]`, `{"alg":1}`, "",
	} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(seed)))
	}
	f.Add("e30=")
	f.Add("e3\n0")
	f.Fuzz(func(t *testing.T, encoded string) {
		got, err := parseHeader(encoded)
		if err != nil {
			if _, ok := ReasonOf(err); !ok {
				t.Errorf("%q: an error without reason: %v", encoded, err)
			}
			return
		}
		data, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatalf("%q was taken: %v", encoded, err)
		}
		var read map[string]any
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatalf("%q was taken: %v", data, err)
		}
		want := map[string]any{"alg": string(got.Algorithm), "kid": string(got.KeyID), "typ": "JWT"}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%q (-taken +read):\n%s", data, diff)
		}
		if again := base64.RawURLEncoding.EncodeToString(data); again != encoded {
			t.Errorf("%q is not the one spelling of %q", encoded, again)
		}
	})
}
