package cluster

import (
	"strings"
	"testing"
)

func TestMAC(t *testing.T) {
	mac := NewMAC([]byte("key"), true)
	signed := func(key, value string) *record {
		return &record{Key: key, Value: []byte(value), Metadata: metadata{Name: "x", ResourceVersion: "1", Annotations: mac.annotations("x", key, []byte(value))}}
	}
	for name, test := range map[string]struct {
		change func(*record)
		mac    *MAC
		want   bool
	}{
		"as it was written":               {func(*record) {}, mac, true},
		"another value":                   {func(r *record) { r.Value = []byte("{ }") }, mac, false},
		"another key":                     {func(r *record) { r.Key = "/b" }, mac, false},
		"a key that goes into the value":  {func(r *record) { r.Key, r.Value = "/a{", []byte("}") }, mac, false},
		"another name":                    {func(r *record) { r.Metadata.Name = "y" }, mac, false},
		"annotations of a backup program": {func(r *record) { r.Metadata.Annotations["b"] = "c" }, mac, true},
		"without a MAC":                   {func(r *record) { r.Metadata.Annotations = nil }, mac, false},
		"without a MAC, before all were":  {func(r *record) { r.Metadata.Annotations = nil }, NewMAC([]byte("key"), false), true},
		"with another one, before all":    {func(r *record) { r.Value = []byte("1") }, NewMAC([]byte("key"), false), false},
		"of another key":                  {func(*record) {}, NewMAC([]byte("other"), true), false},
		"unchecked":                       {func(r *record) { r.Value = nil }, nil, true},
	} {
		r := signed("/a", "{}")
		test.change(r)
		if got := test.mac.accepts(t.Context(), r); got != test.want {
			t.Errorf("%s: accepted %v, want %v", name, got, test.want)
		}
	}
	if (*MAC)(nil).annotations("x", "/a", nil) != nil || strings.Contains(mac.of("x", "/a", []byte("{}")), "=") {
		t.Error("annotations of no MAC, or padding")
	}
}
