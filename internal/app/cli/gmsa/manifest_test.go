package gmsa

import (
	"encoding/binary"
	"encoding/json"
	"testing"
	"unicode/utf16"
)

func TestManifestsOfWindows(t *testing.T) {
	const text = "kind: A\n---\nkind: \U0001f511\n"
	wide := func(order binary.AppendByteOrder) []byte {
		encoded := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(text)) {
			encoded = order.AppendUint16(encoded, unit)
		}
		return encoded
	}
	for name, file := range map[string][]byte{
		"UTF-8":         []byte(text),
		"with mark":     append([]byte{0xef, 0xbb, 0xbf}, text...),
		"little endian": wide(binary.LittleEndian),
		"big endian":    wide(binary.BigEndian),
	} {
		m, err := parseManifest("x", file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if string(m.text) != text || len(m.documents) != 2 || m.utf16 != (file[0] >= 0xfe) {
			t.Errorf("%s: %q, %d documents, UTF-16 %v", name, m.text, len(m.documents), m.utf16)
		}
	}
	if _, err := parseManifest("x", []byte{0xff, 0xfe, 'a'}); err == nil {
		t.Error("half a character is read")
	}
}

func FuzzPlacedJSON(f *testing.F) {
	f.Add([]byte("a: [1, yes, ~, 'x', \"\\u00e4\"]\nb: &b {c: |\n    d\n}\n"))
	f.Add([]byte("a: &a {b: 1}\nc: {<<: *a, d: *a}\ne: &e [*e]\n? [x]\n: y\n"))
	f.Add([]byte("{\"a\":1,\"a\":2}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest("x", text)
		if err != nil {
			return
		}
		for _, document := range m.documents {
			if len(document.Content) == 0 {
				continue
			}
			whole, err := placedJSON(document.Content[0])
			if err != nil {
				continue
			}
			if !json.Valid(whole.json) {
				t.Errorf("no JSON: %s of %q", whole.json, text)
			}
			for offset := range whole.json {
				if at := whole.at(offset); at.Line < 1 || at.Column < 1 {
					t.Errorf("%d of %s is at %v", offset, whole.json, at)
				}
			}
		}
		var report lintReport
		_ = report.add(*m)
	})
}
