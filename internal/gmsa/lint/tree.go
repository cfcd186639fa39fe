package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// The rules that decide whether there is a document at all.
const (
	notJSON     = "not-json"
	tooDeep     = "too-deep"
	notAnObject = "not-an-object"
)

// maxDepth is how deep values may be nested. Credential specs need 5.
const maxDepth = 32

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

var errDepth = errors.New("nested too deep")

// parse returns the document, or what keeps it from being one.
func parse(credspec []byte) (*node, *Finding) {
	failed := func(rule string, at int, reason, fix string) *Finding {
		return &Finding{Rule: rule, Path: "credspec", Offset: at, Refused: true, Reason: reason, Fix: fix}
	}
	const asJSON = "give one JSON object, as New-CredentialSpec writes it"
	if len(bytes.TrimSpace(credspec)) == 0 {
		return nil, failed(notJSON, 0, "the credential spec is missing", asJSON)
	}
	if !utf8.Valid(credspec) {
		return nil, failed(notJSON, 0, "the credential spec is not UTF-8", asJSON)
	}
	p := parser{text: credspec, decoder: json.NewDecoder(bytes.NewReader(credspec))}
	p.decoder.UseNumber()
	root, err := p.value("credspec", 1)
	if errors.Is(err, errDepth) {
		return nil, failed(tooDeep, p.start(), fmt.Sprintf("values are nested more than %d deep", maxDepth), "remove the parts that do not belong to a credential spec")
	}
	if err == nil {
		if _, next := p.decoder.Token(); !errors.Is(next, io.EOF) {
			return nil, failed(notJSON, p.start(), "something follows the JSON value", asJSON)
		}
	}
	if err != nil {
		// The decoder's messages may repeat the text.
		return nil, failed(notJSON, min(p.start(), len(credspec)), "the credential spec is not JSON, or is cut off", asJSON)
	}
	if root.kind != anObject {
		return nil, failed(notAnObject, root.at, fmt.Sprintf("the credential spec is %s, and not an object", root.kind), asJSON)
	}
	return root, nil
}

type parser struct {
	text    []byte
	decoder *json.Decoder
}

// start is where the next token starts.
func (p *parser) start() int {
	at := int(p.decoder.InputOffset())
	for at < len(p.text) && bytes.IndexByte([]byte(" \t\r\n,:"), p.text[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) value(path string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	n := &node{path: path, at: p.start()}
	token, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
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
		if t == '{' {
			n.kind = anObject
			return n, p.members(n, depth)
		}
		n.kind = aList
		return n, p.items(n, depth)
	}
	return n, nil
}

func (p *parser) members(n *node, depth int) error {
	for p.decoder.More() {
		at := p.start()
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		value, err := p.value(n.path+step(key), depth+1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{key: key, at: at, value: value})
	}
	_, err := p.decoder.Token()
	return err
}

func (p *parser) items(n *node, depth int) error {
	for p.decoder.More() {
		value, err := p.value(fmt.Sprintf("%s[%d]", n.path, len(n.items)), depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, value)
	}
	_, err := p.decoder.Token()
	return err
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
