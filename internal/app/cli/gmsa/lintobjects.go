package gmsa

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/gmsa/lint"
)

// add looks at all objects of a file.
func (r *lintReport) add(m manifest) error {
	if isBareJSON(m.text) {
		r.Specs = append(r.Specs, bareJSON(m))
		return nil
	}
	if m.utf16 {
		r.Notes = append(r.Notes, m.file+" is UTF-16, which kubectl does not read: save it as UTF-8")
	}
	for _, document := range m.documents {
		if len(document.Content) == 0 {
			continue
		}
		if err := r.addObject(m.file, document.Content[0], 0); err != nil {
			return err
		}
	}
	return nil
}

func (r *lintReport) addObject(file string, object *yaml.Node, depth int) error {
	if object = unaliased(object); object.Kind == yaml.ScalarNode && object.ShortTag() == "!!null" {
		return nil
	}
	if object.Kind != yaml.MappingNode || depth > maxNesting {
		return fmt.Errorf("line %d: not an object of Kubernetes", object.Line)
	}
	at := place{object.Line, object.Column}
	group, _, _ := strings.Cut(textOf(object, "apiVersion"), "/")
	kind := textOf(object, "kind")
	items := valueOf(object, "items")
	switch {
	case strings.HasSuffix(kind, "List") && items != nil && items.Kind == yaml.SequenceNode:
		for _, item := range items.Content {
			if err := r.addObject(file, item, depth+1); err != nil {
				return err
			}
		}
		return nil
	case group == windowsv1.GroupName && kind == "GMSACredentialSpec":
		whole, err := placedJSON(object)
		if err != nil {
			return err
		}
		spec := lintedSpec{File: file, place: at, Name: textOf(valueOf(object, "metadata"), "name"), Findings: findingsOfObject(object, whole)}
		credspec, err := credspecOf(object)
		if err != nil {
			return err
		}
		if credspec != nil {
			spec.Findings = append(spec.Findings, findingsAt(credspec)...)
		}
		r.Specs = append(r.Specs, spec)
		return nil
	case kind == "" && isBare(object):
		credspec, err := placedJSON(object)
		if err != nil {
			return err
		}
		r.Specs = append(r.Specs, lintedSpec{File: file, place: at, Findings: findingsAt(credspec)})
		return nil
	case kind == "":
		return fmt.Errorf("line %d: not an object of Kubernetes: it has no kind", object.Line)
	}
	what := kind
	if name := textOf(valueOf(object, "metadata"), "name"); name != "" {
		what += " " + name
	}
	r.PassedOver = append(r.PassedOver, passedOver{file, at, what})
	return nil
}

func findingsAt(credspec *placed) []placedFinding {
	findings := []placedFinding{}
	for _, finding := range lint.Check(credspec.json) {
		findings = append(findings, placedFinding{credspec.at(finding.Offset), finding})
	}
	return findings
}

// credspecOf is the credspec of an object, the last if there are several, or nil.
func credspecOf(object *yaml.Node) (*placed, error) {
	pairs, err := pairsOf(object, map[*yaml.Node]bool{})
	if err != nil {
		return nil, err
	}
	for i := len(pairs) - 2; i >= 0; i -= 2 {
		if pairs[i].Value == "credspec" {
			return placedJSON(pairs[i+1])
		}
	}
	return nil, nil
}

// findingsOfObject are those around the credspec, of which the API server and not the webhook is the judge.
func findingsOfObject(object *yaml.Node, whole *placed) []placedFinding {
	findings := []placedFinding{}
	found := func(at *yaml.Node, refused bool, rule, path, reason, fix string) {
		findings = append(findings, placedFinding{place{at.Line, at.Column}, lint.Finding{Rule: rule, Path: path, Refused: refused, Reason: reason, Fix: fix}})
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(object.Content); i += 2 {
		key := object.Content[i]
		switch key.Value {
		case "apiVersion", "kind", "metadata", "credspec", "status", "<<":
		default:
			fix := "remove it, or correct its spelling"
			if strings.EqualFold(key.Value, "credspec") || key.Value == "spec" {
				fix = "write it as credspec"
			}
			found(key, false, "unknown-key", key.Value, fmt.Sprintf("%q is not a key of a GMSACredentialSpec, and the API server drops it", key.Value), fix)
		}
		if seen[key.Value] {
			found(key, true, "duplicate-key", key.Value, fmt.Sprintf("the key %q stands in the object twice, and programs differ in which of them counts", key.Value), "keep one")
		}
		seen[key.Value] = true
	}
	if !bytes.Contains(whole.json, []byte(`"credspec":`)) || !hasKey(whole.json, "credspec") {
		found(object, true, "no-credspec", "credspec", "the object has no credspec, so no pod can use it", "add it beside metadata, as credence gmsa generate prints it")
	}
	metadata := valueOf(object, "metadata")
	name := textOf(metadata, "name")
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		at := object
		if metadata != nil {
			at = metadata
			if node := valueOf(metadata, "name"); node != nil {
				at = node
			}
		}
		found(at, true, "object-name", "metadata.name", fmt.Sprintf("%q cannot be the name of an object: %s", name, reasons[0]), "give it a name such as webapp1-credspec")
	}
	return findings
}

func hasKey(object []byte, key string) bool {
	var keys map[string]json.RawMessage
	return json.Unmarshal(object, &keys) == nil && keys[key] != nil
}

// isBare reports whether an object that has no kind is a credential spec.
func isBare(object *yaml.Node) bool {
	return valueOf(object, "CmsPlugins") != nil || valueOf(object, "DomainJoinConfig") != nil || valueOf(object, "ActiveDirectoryConfig") != nil
}

// isBareJSON reports whether a file is JSON, but not an object of Kubernetes.
func isBareJSON(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Valid(text) && !hasKey(text, "kind") && !hasKey(text, "apiVersion")
}

// bareJSON judges a file as New-CredentialSpec writes it. Findings are named from the top of the file.
func bareJSON(m manifest) lintedSpec {
	spec := lintedSpec{File: m.file, place: place{1, 1}, Findings: []placedFinding{}}
	for _, finding := range lint.Check(m.text) {
		spec.Findings = append(spec.Findings, placedFinding{placeOf(m.text, finding.Offset), finding})
	}
	return spec
}

func placeOf(text []byte, offset int) place {
	before := text[:offset]
	return place{Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])}
}
