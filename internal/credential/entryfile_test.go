package credential

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/test/testkit"
)

func fullEntry() Entry {
	at := time.Date(2026, 5, 4, 12, 0, 0, 123456789, time.UTC)
	return Entry{
		Key:        map[string]string{"source": "oidc", "issuer": "https://<issuer>"},
		Credential: Credential{Token: NewSecret("token"), CertificatePEM: []byte("cert"), KeyPEM: NewSecret("key"), Expires: at.Add(time.Hour)},
		State:      json.RawMessage(`{"refresh":"x"}`), Obtained: at, Refusals: map[string]Refusals{"": {Count: 2, At: at}, "a": {Count: 1, At: at}},
		Failure: &Failure{At: at, Class: Refused, Message: "no", Interactive: true, Callers: []Caller{{PID: 1, Started: "2"}, {PID: 3}}, Count: 4},
	}
}

func TestEntryComesBackAsItWasKept(t *testing.T) {
	for _, want := range []Entry{fullEntry(), {Key: map[string]string{"source": "x"}}} {
		data := testkit.Need(encodeEntry(want))(t)
		got := testkit.Need(decodeEntry(cache.NameOf(want.Key), data))(t)
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("entry (-want +got):\n%s", diff)
		}
		if _, err := decodeEntry(cache.NameOf(map[string]string{"source": "other"}), data); err == nil {
			t.Error("read as the entry of another key")
		}
	}
	if _, err := encodeEntry(Entry{State: json.RawMessage("{")}); err == nil {
		t.Error("a state that is not JSON was encoded")
	}
}

// Whatever is in a file, reading it gives an entry that can be served and written again, or an error.
func FuzzDecodeEntry(f *testing.F) {
	entry := fullEntry()
	data, err := encodeEntry(entry)
	if err != nil {
		f.Fatal(err)
	}
	_, body, _ := bytes.Cut(data, []byte("\n"))
	f.Add(data, false)
	f.Add(body, true)
	f.Add([]byte(`{"key":{"source":"oidc"},"token":"a b"}`), true)
	f.Add([]byte(`{"key":null,"failure":{"count":-1}}`), true)
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		name := cache.NameOf(entry.Key)
		if sum {
			// As if it had been written with the right sum, under the right name.
			var wire wireEntry
			if json.Unmarshal(data, &wire) == nil {
				name = cache.NameOf(wire.Key)
			}
			data = append([]byte(header(data)), data...)
		}
		got, err := decodeEntry(name, data)
		if err != nil {
			if got != nil {
				t.Error("an entry and an error")
			}
			return
		}
		if cache.NameOf(got.Key) != name || got.Failure != nil && got.Failure.Count < 1 {
			t.Errorf("read %v", got)
		}
		for cluster, r := range got.Refusals {
			if r.Count < 1 {
				t.Errorf("cluster %q: %+v", cluster, r)
			}
		}
		if got.has() {
			if _, err := got.Credential.Encode(V1); err != nil && len(data) < maxOutput/2 {
				t.Errorf("the entry read cannot be served: %v", err)
			}
		}
		again, err := encodeEntry(*got)
		testkit.Must(t, err)
		if reread, err := decodeEntry(name, again); err != nil {
			t.Errorf("the entry written back cannot be read: %v", err)
		} else if diff := cmp.Diff(got.Credential, reread.Credential); diff != "" {
			t.Errorf("written anew (-want +got):\n%s", diff)
		}
	})
}
