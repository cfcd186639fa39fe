package gmsa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// manifest is a file of YAML or JSON, with the places of all that is in it.
type manifest struct {
	file      string
	text      []byte // UTF-8, without a byte order mark
	documents []*yaml.Node
	utf16     bool // the file is not as kubectl reads it
}

// readManifests reads the files that -f names.
func readManifests(t *screen.Terminal, cmd *cobra.Command, files []string) ([]manifest, error) {
	if len(files) == 0 {
		return nil, command.Usage(cmd, "-f is missing: give the name of a file, or - for standard input")
	}
	var manifests []manifest
	for i, file := range files {
		if file == "-" && slices.Contains(files[:i], "-") {
			return nil, command.Usage(cmd, "-f: standard input can be read only once")
		}
		text, err := command.ReadFile(t.In, file)
		if err != nil {
			return nil, command.Usage(cmd, "-f: "+err.Error())
		}
		one, err := parseManifest(file, text)
		if err != nil {
			return nil, command.Usage(cmd, fmt.Sprintf("-f: %s: %v", file, err))
		}
		manifests = append(manifests, *one)
	}
	return manifests, nil
}

func parseManifest(file string, text []byte) (*manifest, error) {
	plain, wide, err := utf8Text(text)
	if err != nil {
		return nil, err
	}
	m := &manifest{file: file, text: plain, utf16: wide}
	decoder := yaml.NewDecoder(bytes.NewReader(plain))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is neither YAML nor JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		m.documents = append(m.documents, &document)
	}
}

// utf8Text returns a text without its byte order mark, which programs of Windows write; wide reports whether it was UTF-16.
func utf8Text(text []byte) (plain []byte, wide bool, err error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xef, 0xbb, 0xbf}):
		return text[3:], false, nil
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return text, false, nil
	}
	if text = text[2:]; len(text)%2 != 0 {
		return nil, true, errors.New("it is UTF-16, and ends within a character")
	}
	units := make([]uint16, 0, len(text)/2)
	for ; len(text) > 0; text = text[2:] {
		units = append(units, order.Uint16(text))
	}
	return []byte(string(utf16.Decode(units))), true, nil
}

// valueOf is the value of a key of a mapping, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	n = unaliased(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return unaliased(n.Content[i+1])
		}
	}
	return nil
}

// textOf is the text of a key of a mapping, or "".
func textOf(n *yaml.Node, key string) string {
	if value := valueOf(n, key); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}
	return ""
}

func unaliased(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
