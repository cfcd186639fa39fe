package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/credence-id/credence/internal/strictjson"
)

// The rules that decide whether there is a document at all.
const (
	notJSON     = "not-json"
	tooDeep     = "too-deep"
	notAnObject = "not-an-object"
)

// kind is the type of a JSON value, as messages name it.
type kind string

const (
	anObject kind = "an object"
	aList    kind = "a list"
	aString  kind = "a string"
	aNumber  kind = "a number"
	aBoolean kind = "a boolean"
	isNull   kind = "null"
)

// node is a JSON value with its place, that keeps the order of its members, and those whose key repeats.
type node struct {
	kind kind
	path string
	at   int

	text    string   // of a string
	members []member // of an object
	items   []*node  // of a list

	mistyped bool // not of the type of its place: only wrong-type reports it
}

type member struct {
	key   string
	at    int // of the key
	value *node
}

// keyNode is the place of a member's key.
func (m member) keyNode() *node { return &node{path: m.value.path, at: m.at} }

// member is the value of a key, the last if there are several; nil if it is absent or null.
func (n *node) member(key string) *node {
	if n == nil {
		return nil
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].key == key && n.members[i].value.kind != isNull {
			return n.members[i].value
		}
	}
	return nil
}

// missing is the place where a member would be.
func (n *node) missing(key string) *node { return &node{path: n.path + "." + key, at: n.at} }

// parse returns the document, or what keeps it from being one.
func parse(credspec []byte) (*node, *Finding) {
	failed := func(rule string, at int, reason, fix string) *Finding {
		return &Finding{Rule: rule, Path: "credspec", Offset: at, Refused: true, Reason: reason, Fix: fix}
	}
	const asJSON = "give one JSON object, as New-CredentialSpec writes it"
	if len(bytes.TrimSpace(credspec)) == 0 {
		return nil, failed(notJSON, 0, "the credential spec is missing", asJSON)
	}
	var wrong *strictjson.Error
	if errors.As(strictjson.Check(credspec, strictjson.Repeats), &wrong) { // duplicateKey reports all of them
		switch at := min(wrong.At, len(credspec)); wrong.Fault {
		case strictjson.Encoding:
			return nil, failed(notJSON, at, "the credential spec is not UTF-8", asJSON)
		case strictjson.Depth:
			return nil, failed(tooDeep, at, fmt.Sprintf("values are nested more than %d deep", strictjson.MaxDepth), "remove the parts that do not belong to a credential spec")
		case strictjson.Trailing:
			return nil, failed(notJSON, at, "something follows the JSON value", asJSON)
		default:
			return nil, failed(notJSON, at, "the credential spec is not JSON, or is cut off", asJSON)
		}
	}
	p := parser{text: credspec, decoder: json.NewDecoder(bytes.NewReader(credspec))}
	p.decoder.UseNumber()
	root := p.value("credspec")
	if root.kind != anObject {
		return nil, failed(notAnObject, root.at, fmt.Sprintf("the credential spec is %s, and not an object", root.kind), asJSON)
	}
	return root, nil
}

// parser reads JSON that is known to be valid.
type parser struct {
	text    []byte
	decoder *json.Decoder
}

func (p *parser) token() (token json.Token, at int) {
	at = int(p.decoder.InputOffset())
	for bytes.IndexByte([]byte(" \t\r\n,:"), p.text[at]) >= 0 {
		at++
	}
	token, _ = p.decoder.Token()
	return token, at
}

func (p *parser) value(path string) *node {
	token, at := p.token()
	n := &node{path: path, at: at}
	switch t := token.(type) {
	case nil:
		n.kind = isNull
	case bool:
		n.kind = aBoolean
	case json.Number:
		n.kind = aNumber
	case string:
		n.kind, n.text = aString, t
	case json.Delim:
		n.kind = aList
		if t == '{' {
			n.kind = anObject
		}
		for p.decoder.More() {
			if n.kind == aList {
				n.items = append(n.items, p.value(fmt.Sprintf("%s[%d]", path, len(n.items))))
				continue
			}
			token, at := p.token()
			key, _ := token.(string)
			n.members = append(n.members, member{key: key, at: at, value: p.value(path + step(key))})
		}
		p.token()
	}
	return n
}

var plainKey = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// step is a key as part of a path.
func step(key string) string {
	if plainKey.MatchString(key) {
		return "." + key
	}
	return "[" + quoted(key) + "]"
}

// quoted shows untrusted text: on one line, cut if it is long.
func quoted(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return strconv.QuoteToASCII(text)
}
