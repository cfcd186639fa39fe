//go:build cgo

package pkcs11

import (
	"errors"
	"testing"

	"github.com/miekg/pkcs11"

	"github.com/credence-id/credence/test/testkit"
)

// The keys of these tests are where they belong: their private values cannot be read, and never could be.
func TestKeyStaysInItsToken(t *testing.T) {
	private := map[string]uint{"P-256": pkcs11.CKA_VALUE, "RSA 2048": pkcs11.CKA_PRIVATE_EXPONENT}
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			token := newToken(t, kind, "key")
			testkit.Need(token.open())(t)
			raw := newSession(t, token)
			find := []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_CLASS, pkcs11.CKO_PRIVATE_KEY)}
			testkit.Must(t, raw.FindObjectsInit(raw.session, find))
			keys, _, err := raw.FindObjects(raw.session, 2)
			if err := errors.Join(err, raw.FindObjectsFinal(raw.session)); err != nil || len(keys) != 1 {
				t.Fatalf("%d private keys, error %v", len(keys), err)
			}
			for name, want := range map[uint]byte{
				pkcs11.CKA_EXTRACTABLE: 0, pkcs11.CKA_SENSITIVE: 1, pkcs11.CKA_NEVER_EXTRACTABLE: 1, pkcs11.CKA_ALWAYS_SENSITIVE: 1,
			} {
				got, err := raw.GetAttributeValue(raw.session, keys[0], []*pkcs11.Attribute{pkcs11.NewAttribute(name, nil)})
				if err != nil || len(got) != 1 || len(got[0].Value) != 1 || got[0].Value[0] != want {
					t.Errorf("attribute %#x is not %d, error %v", name, want, err)
				}
			}
			got, err := raw.GetAttributeValue(raw.session, keys[0], []*pkcs11.Attribute{pkcs11.NewAttribute(private[kind], nil)})
			if !errors.Is(err, pkcs11.Error(pkcs11.CKR_ATTRIBUTE_SENSITIVE)) {
				t.Errorf("the private value can be read: %d attributes, error %v", len(got), err)
			}
		})
	}
}

// raw is the driver itself, which crypto11 has initialised and logged in to.
type raw struct {
	*pkcs11.Ctx
	slot    uint
	session pkcs11.SessionHandle
}

func newSession(t *testing.T, token *Token) raw {
	t.Helper()
	r := raw{Ctx: pkcs11.New(driver)}
	t.Cleanup(r.Destroy)
	slots := testkit.Need(r.GetSlotList(true))(t)
	for _, slot := range slots {
		info, err := r.GetTokenInfo(slot)
		if err != nil {
			t.Fatal(err)
		}
		if info.Label == token.Name {
			r.slot = slot
			if r.session, err = r.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	t.Fatalf("there is no token %q", token.Name)
	return r
}
