package issuer

import (
	"encoding/asn1"
	"encoding/json"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// Whatever the strings of a request hold, a token has the requested claims, and no others.
func FuzzClaimsAreWhatWasAskedFor(f *testing.F) {
	f.Add("ns", "name", "uid", "audience", "another", "", "", "", int64(0))
	f.Add("ns", "name", "uid", `x"],"sub":"admin","aud":["y`, "</script>\u2028", "shop", "cart", "1", int64(time.Hour))
	f.Add(`a","b":"c`, `n\u0022`, "uid", "\x00", "\\", `{"a":1}`, `"`, `\`, int64(49*time.Hour))
	f.Add("ns", "name", "uid", "a\xffb", "\ufffd", "ns", "sa", "\xff", int64(10*time.Minute))
	issuer := newIssuer(f, testConfig())
	f.Fuzz(func(t *testing.T, namespace, name, uid, audience, another, contextNamespace, contextName, contextUID string, lifetime int64) {
		request := Request{
			Identity:        Identity{Namespace: namespace, Name: name, UID: uid},
			Audiences:       []string{audience, another},
			TargetAlgorithm: identity.ES256,
			Lifetime:        time.Duration(lifetime),
		}
		if contextNamespace != "" || contextName != "" || contextUID != "" {
			request.Context = &Context{ServiceAccount: &ServiceAccount{Namespace: contextNamespace, Name: contextName, UID: contextUID}}
		}
		prepared, err := issuer.Prepare(request)
		if err != nil {
			return
		}
		token, err := issuer.Sign(t.Context(), prepared)
		testkit.Must(t, err, "what was prepared is not signed")

		want := map[string]any{
			"iss": "https://identity.example.com",
			"sub": "gardener.cloud:workloadidentity:" + namespace + ":" + name + ":" + uid,
			"aud": []any{audience, another},
			"iat": float64(now().Unix()),
			"nbf": float64(now().Unix()),
			"exp": float64(prepared.Expiry().Unix()),
			"jti": prepared.JTI(),
			"gardener.cloud": map[string]any{
				"workloadIdentity": map[string]any{"name": name, "namespace": namespace, "uid": uid},
				"garden":           map[string]any{"id": "garden-1"},
			},
		}
		if request.Context != nil {
			want["kubernetes.io"] = map[string]any{
				"namespace":      contextNamespace,
				"serviceaccount": map[string]any{"name": contextName, "uid": contextUID},
			}
		}
		_, payload, _ := parts(t, token)
		var got map[string]any
		testkit.Must(t, json.Unmarshal(payload, &got), "the claims are not JSON")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
	})
}

// rawSignature accepts what encoding/asn1 accepts as two positive numbers of the curve's size, and reads the same from it.
func FuzzRawSignature(f *testing.F) {
	f.Add([]byte{0x30, 6, 2, 1, 1, 2, 1, 1})
	f.Add([]byte{0x30, 8, 2, 2, 0, 0x80, 2, 2, 0, 0xff})
	f.Add([]byte{0x30, 0x80, 2, 1, 1, 2, 1, 1, 0, 0})
	f.Fuzz(func(t *testing.T, der []byte) {
		want, wantErr := slowRawSignature(der)
		got, err := RawSignature(der)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%x: %v, but encoding/asn1 returns %v", der, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%x (-want +got):\n%s", der, diff)
		}
	})
}

func slowRawSignature(der []byte) ([]byte, error) {
	var signature struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(der, &signature)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 || signature.R.Sign() <= 0 || signature.S.Sign() <= 0 || signature.R.BitLen() > 256 || signature.S.BitLen() > 256 {
		return nil, errors.New("out of range")
	}
	// A sequence may hold more than the two numbers for encoding/asn1, but not here.
	if again, err := asn1.Marshal(signature); err != nil || string(again) != string(der) {
		return nil, errors.New("more than two numbers")
	}
	raw := make([]byte, 64)
	signature.R.FillBytes(raw[:32])
	signature.S.FillBytes(raw[32:])
	return raw, nil
}
