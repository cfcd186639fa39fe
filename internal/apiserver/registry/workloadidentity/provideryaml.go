package workloadidentity

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/credence-id/credence/internal/wording"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckYAML checks the scalars of an identity in YAML, which the API machinery turns into JSON before validation: it stores numbers that
// do not fit in 64 bits as others or as text, and bytes as text. The whole body is checked, since a merge or an encoded key can
// hold a providerConfig, too; no other field takes such a number.
func CheckYAML(document *yaml.Node) field.ErrorList {
	for _, root := range document.Content {
		if root.Kind == yaml.MappingNode {
			return checkNode(root, nil, 0)
		}
	}
	return nil // refused later
}

// checkNode returns the first fault of what is inside of depth mappings. Its path ends at the third, which a providerConfig is.
func checkNode(node *yaml.Node, path *field.Path, depth int) field.ErrorList {
	if node.Kind == yaml.ScalarNode {
		if err := checkScalar(node); err != nil {
			return field.ErrorList{field.Invalid(path, "", err.Error())}
		}
		return nil
	}
	for i, child := range node.Content {
		at := path
		if node.Kind == yaml.MappingNode {
			key := node.Content[i&^1]
			if depth < 3 {
				at = path.Child(wording.Abbreviate(key.Value))
			}
			if text, ok := number(key); ok && child == key && !isInteger(text) {
				return field.ErrorList{field.Invalid(at, "", fmt.Sprintf("has the number %s as a key: write it as a string", wording.Abbreviate(key.Value)))}
			}
		}
		if errs := checkNode(child, at, depth+1); len(errs) > 0 {
			return errs
		}
	}
	return nil
}

func checkScalar(node *yaml.Node) error {
	if node.ShortTag() == "!!binary" {
		return errors.New("has a value with the tag !!binary, which JSON does not have: write it as a string")
	}
	text, ok := number(node)
	if !ok || isInteger(text) && node.ShortTag() != "!!float" {
		return nil
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err == nil {
		text = strconv.FormatInt(n, 10) + ".0" // an integer with the tag !!float
	}
	octal := strings.HasPrefix(strings.TrimPrefix(text, "-"), "0")
	if octal && errors.Is(err, strconv.ErrRange) || changes(text) {
		return errNumber(node.Value)
	}
	return nil
}

// yamlNumber is what YAML calls a number, however large.
var yamlNumber = regexp.MustCompile(`^[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)$`)

// number is the text of a scalar that is written as a number, without the sign + and underscores.
func number(node *yaml.Node) (text string, ok bool) {
	text = strings.TrimPrefix(strings.ReplaceAll(node.Value, "_", ""), "+")
	if node.Kind != yaml.ScalarNode {
		return "", false
	}
	if node.Style&yaml.TaggedStyle != 0 {
		return text, node.ShortTag() == "!!int" || node.ShortTag() == "!!float"
	}
	quoted := node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	return text, !quoted && yamlNumber.MatchString(text)
}

// isInteger reports whether the API machinery reads a number as an int64.
func isInteger(text string) bool {
	_, err := strconv.ParseInt(text, 0, 64)
	return err == nil
}
