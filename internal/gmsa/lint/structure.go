package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/strictjson"
)

// document is what the rules look at.
type document struct {
	raw      []byte
	root     *node
	findings []Finding
}

// shape is what a value must be: the fields that Windows knows, which are those of the CustomResourceDefinition.
type shape struct {
	kind   kind
	fields map[string]shape // of an object
	items  *shape           // of a list
}

func credentialSpec() shape {
	text := shape{kind: aString}
	texts := func(names ...string) shape {
		s := shape{kind: anObject, fields: map[string]shape{}}
		for _, name := range names {
			s.fields[name] = text
		}
		return s
	}
	account := texts("Name", "Scope")
	return shape{kind: anObject, fields: map[string]shape{
		"CmsPlugins":       {kind: aList, items: &text},
		"DomainJoinConfig": texts("Sid", "MachineAccountName", "Guid", "DnsTreeName", "DnsName", "NetBiosName"),
		"ActiveDirectoryConfig": {kind: anObject, fields: map[string]shape{
			"GroupManagedServiceAccounts": {kind: aList, items: &account},
			"HostAccountConfig":           texts("PortableCcgVersion", "PluginGUID", "PluginInput"),
		}},
	}}
}

// visit calls see for every value at a known place, with its shape, before the values inside it.
func visit(n *node, s shape, see func(*node, shape)) {
	see(n, s)
	if n.kind != s.kind {
		return
	}
	for _, m := range n.members {
		if field, known := s.fields[m.key]; known {
			visit(m.value, field, see)
		}
	}
	for _, item := range n.items {
		visit(item, *s.items, see)
	}
}

const maxLength = 64 << 10

func tooLong(d *document, found report) {
	if length := d.compactLength(); length > maxLength {
		found(d.root, true, fmt.Sprintf("the credential spec has %d bytes without white space, and a pod can hold %d", length, maxLength),
			"remove what the accounts of the pods do not need")
	}
}

// compactLength is the length of the document as a pod gets it.
func (d *document) compactLength() int {
	if len(d.raw) <= maxLength/2 {
		return len(d.raw) // an encoder that escapes line separators doubles it at most
	}
	var value any
	if json.Unmarshal(d.raw, &value) != nil {
		return len(d.raw)
	}
	compact, err := strictjson.Encode(value)
	if err != nil {
		return len(d.raw)
	}
	return len(compact)
}

func wrongType(d *document, found report) {
	visit(d.root, credentialSpec(), func(n *node, s shape) {
		if n.kind == s.kind {
			return
		}
		if n.kind == isNull { // objects from before there was a schema may have it, and runtimes may read over it
			found(n, false, fmt.Sprintf("the value is null, where the API server wants %s", s.kind), fmt.Sprintf("give %s, or leave the key out", s.kind))
			return
		}
		n.mistyped = true
		fix := fmt.Sprintf("give %s", s.kind)
		switch {
		case s.kind == aString && (n.kind == aNumber || n.kind == aBoolean):
			fix = "put it in quotation marks"
		case s.kind == aString:
			fix = "give a string, into which a value of another kind goes as JSON text"
		}
		found(n, true, fmt.Sprintf("the value is %s, and must be %s", n.kind, s.kind), fix)
	})
}

func duplicateKey(d *document, found report) {
	var search func(n *node)
	search = func(n *node) {
		seen := map[string]bool{}
		for _, m := range n.members {
			if seen[m.key] {
				found(m.keyNode(), true, fmt.Sprintf("the key %s stands in the object twice, and programs differ in which of them counts", quoted(m.key)), "keep one")
			}
			seen[m.key] = true
			search(m.value)
		}
		for _, item := range n.items {
			search(item)
		}
	}
	search(d.root)
}

func unknownKey(d *document, found report) {
	d.unknownKeys(func(m member, near string) {
		if near == "" {
			found(m.keyNode(), false, fmt.Sprintf("%s is not a key of a credential spec, and the API server drops it", quoted(m.key)), "remove it, or correct its spelling")
		}
	})
}

func keyCase(d *document, found report) {
	d.unknownKeys(func(m member, near string) {
		if near != "" {
			found(m.keyNode(), false, fmt.Sprintf("the key is written %s, and the API server drops what is not written %s", quoted(m.key), near), "write it as "+near)
		}
	})
}

// unknownKeys calls see for each key that is unknown at its place, with the known key that differs only in case.
func (d *document) unknownKeys(see func(m member, near string)) {
	visit(d.root, credentialSpec(), func(n *node, s shape) {
		if n.kind != anObject {
			return
		}
		for _, m := range n.members {
			if _, known := s.fields[m.key]; known {
				continue
			}
			near := ""
			for name := range s.fields {
				if strings.EqualFold(name, m.key) {
					near = name
				}
			}
			see(m, near)
		}
	})
}

func surroundingSpace(d *document, found report) {
	visit(d.root, credentialSpec(), func(n *node, s shape) {
		if n.kind == aString && s.kind == aString && strings.TrimSpace(n.text) != n.text {
			found(n, false, "the value begins or ends with white space, which is handed on as it is", "remove the white space")
		}
	})
}

// value is the text of a member without white space around it, and its place; nil if it is absent, empty or no text.
func (n *node) value(key string) (string, *node) {
	v := n.member(key)
	if v == nil || v.mistyped {
		return "", nil
	}
	text := strings.TrimSpace(v.text)
	if text == "" {
		return "", nil
	}
	return text, v
}

// lacking is the place of a member that is absent or empty text; nil otherwise. A value of the wrong type is not lacking.
func (n *node) lacking(key string) *node {
	v := n.member(key)
	switch {
	case v == nil:
		return n.missing(key)
	case v.kind == aString && strings.TrimSpace(v.text) == "":
		return v
	}
	return nil
}

// each are the items of a list that are of a kind; none without a list.
func (n *node) each(of kind) []*node {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.items), func(item *node) bool { return item.kind != of })
}

// object is a member that is an object; nil otherwise.
func (n *node) object(key string) *node {
	if v := n.member(key); v != nil && v.kind == anObject {
		return v
	}
	return nil
}
