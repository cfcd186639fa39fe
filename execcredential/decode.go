package execcredential

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

const apiGroup = "client.authentication.k8s.io"

// Decode checks the output of a program, which must be one ExecCredential of the version apiVersion, and returns its credential. Now
// is when the program ran: certificates must be valid then. Every error is an *OutputError and holds nothing secret.
//
// Accepted beyond the letter of the format, because programs in use rely on it: an object without kind, YAML instead of JSON, a byte
// order mark, fields that are not known. Refused, although client-go accepts them: a field twice, a token that a header can't carry,
// a certificate that isn't valid now.
func Decode(output []byte, apiVersion string, now time.Time) (*Credential, error) {
	top, err := topLevel(output)
	if err != nil {
		return nil, err
	}
	if err := checkType(top, apiVersion); err != nil {
		return nil, err
	}
	if isNull(top["status"]) {
		return nil, &OutputError{Problem: NoStatus, Detail: "the program must fill in status"}
	}
	status, err := object(top["status"], "status")
	if err != nil {
		return nil, err
	}
	m := Material{}
	if m.Token, err = text(status, "status", "token"); err != nil {
		return nil, err
	}
	certificate, err := text(status, "status", "clientCertificateData")
	if err != nil {
		return nil, err
	}
	key, err := text(status, "status", "clientKeyData")
	if err != nil {
		return nil, err
	}
	if m.Token == "" && certificate == "" && key == "" {
		return nil, &OutputError{Problem: NoCredential, Detail: `set status.token, or status.clientCertificateData and status.clientKeyData; names of fields are case-sensitive`}
	}
	if err := checkToken(m.Token); err != nil {
		return nil, err
	}
	if m.Expires, err = timestamp(status["expirationTimestamp"]); err != nil {
		return nil, err
	}
	if certificate != "" || key != "" {
		if m.Certificate, err = keyPair(certificate, key, now); err != nil {
			return nil, err
		}
	}
	return newCredential(m), nil
}

func checkType(top map[string]json.RawMessage, want string) error {
	version, err := text(top, "", "apiVersion")
	if err != nil {
		return err
	}
	kind, err := text(top, "", "kind")
	if err != nil {
		return err
	}
	group, _, _ := strings.Cut(version, "/")
	switch {
	case version == "":
		return &OutputError{Problem: NoVersion, Want: want}
	case kind != "" && kind != "ExecCredential":
		return &OutputError{Problem: WrongKind, Want: "ExecCredential", Got: plain(kind)}
	case group != apiGroup:
		return &OutputError{Problem: WrongGroup, Want: want, Got: plain(version)}
	case version != want:
		return &OutputError{Problem: WrongVersion, Want: want, Got: plain(version),
			Detail: "set apiVersion in the kubeconfig to what the program speaks, or make the program obey " + execInfoVariable}
	}
	return nil
}

// topLevel returns the fields of the one object in output.
func topLevel(output []byte) (map[string]json.RawMessage, error) {
	output = bytes.TrimPrefix(output, []byte("\xef\xbb\xbf"))
	output = bytes.TrimFunc(output, unicode.IsSpace)
	switch {
	case len(output) == 0:
		return nil, &OutputError{Problem: EmptyOutput, Detail: "the program must write one ExecCredential to it"}
	case isNull(output):
		return nil, &OutputError{Problem: NullOutput}
	case output[0] == '{':
		return object(output, "")
	}
	if json.Valid(output) {
		return nil, &OutputError{Problem: NotAnObject}
	}
	if converted, ok := fromYAML(output); ok {
		return object(converted, "")
	}
	if at := bytes.IndexByte(output, '{'); at > 0 {
		if first, err := firstValue(output[at:]); err == nil && bytes.Contains(first, []byte("apiVersion")) {
			return nil, &OutputError{Problem: TextBeforeObject, Detail: fmt.Sprintf("%d bytes; messages belong on standard error", at)}
		}
	}
	return nil, &OutputError{Problem: NotAnObject, Detail: "it is text; messages belong on standard error"}
}

func firstValue(data []byte) (json.RawMessage, error) {
	var first json.RawMessage
	err := json.NewDecoder(bytes.NewReader(data)).Decode(&first)
	return first, err
}

// fromYAML converts one document that is a mapping and has an apiVersion. Other output is not taken for YAML.
func fromYAML(output []byte) (json.RawMessage, bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(output))
	var document yaml.Node
	if decoder.Decode(&document) != nil || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, false
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, false
	}
	converted, err := yamlToJSON(document.Content[0])
	return converted, err == nil && bytes.Contains(converted, []byte(`"apiVersion"`))
}

// object returns the fields of the one JSON object in data, by their exact names.
func object(data json.RawMessage, place string) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	syntax := func(err error) error {
		detail := "it ends too early"
		if e := (*json.SyntaxError)(nil); errors.As(err, &e) && e.Offset < int64(len(data)) {
			detail = fmt.Sprintf("at byte %d", e.Offset)
		}
		return &OutputError{Problem: BadSyntax, Detail: detail}
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, syntax(err)
	}
	if token != json.Delim('{') {
		return nil, &OutputError{Problem: WrongType, Detail: path(place, "") + " must be an object"}
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, syntax(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, syntax(err)
		}
		if _, twice := fields[name.(string)]; twice {
			return nil, &OutputError{Problem: DuplicateField, Detail: plain(path(place, name.(string)))}
		}
		fields[name.(string)] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, syntax(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &OutputError{Problem: DataAfterObject, Detail: fmt.Sprintf("from byte %d; write one document, and messages to standard error", decoder.InputOffset())}
	}
	return fields, nil
}

func text(fields map[string]json.RawMessage, place, name string) (string, error) {
	var s string
	if err := json.Unmarshal(orNull(fields[name]), &s); err != nil {
		return "", &OutputError{Problem: WrongType, Detail: path(place, name) + " must be a string"}
	}
	return s, nil
}

// timestamp is RFC 3339 or null. The zero time is how Kubernetes writes a missing one.
func timestamp(value json.RawMessage) (time.Time, error) {
	if isNull(value) {
		return time.Time{}, nil
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return time.Time{}, &OutputError{Problem: BadTimestamp, Detail: "it must be a string, like 2006-01-02T15:04:05Z"}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, &OutputError{Problem: BadTimestamp, Detail: fmt.Sprintf("it has %d characters, and must look like 2006-01-02T15:04:05Z", len(s))}
	}
	return t, nil
}

func path(place, name string) string {
	switch {
	case place == "":
		return name
	case name == "":
		return place
	}
	return place + "." + name
}

// plain is what an error may show of a name in the output: nothing that is not a name. Programs have put secrets everywhere.
func plain(name string) string {
	if name == "" || len(name) <= 60 && !strings.HasPrefix(name, "eyJ") && !strings.ContainsFunc(name, func(r rune) bool {
		return r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '/'
	}) {
		return name
	}
	return fmt.Sprintf("something else, of %d characters", len(name))
}

func isNull(value json.RawMessage) bool {
	return len(value) == 0 || string(bytes.TrimSpace(value)) == "null"
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}
