// Package convert rewrites manifests between the two forms in which pods name the account that they run as: annotations, which
// came first, and the fields of windowsOptions. In go the text of YAML or JSON documents; out comes the same text with only that
// moved: comments and order stay. Each level is kept: a container's account stays at the container, and wins over the pod's. It
// makes no requests, and never chooses between two values that contradict each other.
package convert

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Form is a way to name an account.
type Form string

// The two forms.
const (
	Fields      Form = "fields"
	Annotations Form = "annotations"
)

// Problem is something that keeps an object from being converted.
type Problem struct {
	// Line and Column count from 1, in the whole text.
	Line, Column int
	// Path is the place within the object, as kubectl names fields.
	Path string
	// Reason and Fix are a sentence each.
	Reason, Fix string
}

// maxLists is how deep lists may be in lists.
const maxLists = 10

// object converts an object, or the objects of a list, and returns how many of them have changed.
func (c *conversion) object(object *yaml.Node, depth int) int {
	if object = resolve(object); object == nil || object.Kind != yaml.MappingNode || depth > maxLists {
		return 0
	}
	kind := text(object, "kind")
	if items := resolve(child(object, "items")); strings.HasSuffix(kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
		changed := 0
		for _, item := range items.Content {
			changed += c.object(item, depth+1)
		}
		return changed
	}
	path, ok := templates()[kind]
	group, _, versioned := strings.Cut(text(object, "apiVersion"), "/")
	if !versioned {
		group = ""
	}
	if !ok || !groups()[group] {
		c.unknownKind(object, kind)
		return 0
	}
	holder, at := object, ""
	for _, key := range path {
		if holder = resolve(child(holder, key)); holder == nil || holder.Kind != yaml.MappingNode {
			return 0
		}
		at += key + "."
	}
	before := c.moved
	p := pod{conversion: c, holder: holder, path: at}
	if c.to == Fields {
		p.toFields()
	} else {
		p.toAnnotations()
	}
	if c.moved > before {
		return 1
	}
	return 0
}

// templates are the kinds that have pods, with where in them.
func templates() map[string][]string {
	template := []string{"spec", "template"}
	return map[string][]string{
		"Pod": {}, "PodTemplate": {"template"}, "CronJob": {"spec", "jobTemplate", "spec", "template"},
		"Deployment": template, "StatefulSet": template, "DaemonSet": template, "ReplicaSet": template, "Job": template, "ReplicationController": template,
	}
}

// groups are those that have had these kinds, since the time of the annotations.
func groups() map[string]bool {
	return map[string]bool{"": true, "apps": true, "batch": true, "extensions": true}
}

// unknownKind records an object of an unknown kind that mentions gMSAs.
func (c *conversion) unknownKind(object *yaml.Node, kind string) {
	found := false
	seen := map[*yaml.Node]bool{}
	var search func(n *yaml.Node)
	search = func(n *yaml.Node) {
		if n == nil || seen[n] || found {
			return
		}
		seen[n] = true
		if n.Kind == yaml.ScalarNode && (strings.Contains(n.Value, "alpha.windows.kubernetes.io/gmsa-credential-spec") || strings.HasPrefix(n.Value, nameField[:len(contentsField)])) {
			found = true
		}
		for _, content := range n.Content {
			search(content)
		}
	}
	if search(object); found && kind != "GMSACredentialSpec" {
		c.result.PassedOver = append(c.result.PassedOver, fmt.Sprintf("line %d: %s %s", c.base+object.Line, kind, text(resolve(child(object, "metadata")), "name")))
	}
}
