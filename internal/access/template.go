package access

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TemplatesPolicy is the policy for what makes pods in Kubernetes itself. Those of other kinds are made from it.
const TemplatesPolicy = Policies + "templates"

// choice is how the expressions of TemplatesPolicy choose the template of an object, of this name.
const choice = "request.resource.resource == 'cronjobs' ? OBJECT.spec.jobTemplate.?spec.?template : request.resource.resource == 'podtemplates' ? OBJECT.?template : OBJECT.spec.?template"

// Template is where objects of a kind have the template of their pods.
type Template struct {
	Group, Version, Resource string
	Path                     []string
}

var field = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseTemplate reads GROUP/VERSION,RESOURCE=PATH, such as argoproj.io/v1alpha1,rollouts=spec.template. In place of the group stands the name
// of the CustomResourceDefinition, too.
func ParseTemplate(text string) (Template, error) {
	kind, path, _ := strings.Cut(text, "=")
	api, resource, _ := strings.Cut(kind, ",")
	group, version, _ := strings.Cut(api, "/")
	t := Template{strings.TrimPrefix(group, resource+"."), version, resource, strings.Split(path, ".")}
	switch {
	case len(validation.IsDNS1123Subdomain(t.Group)) > 0 || !strings.Contains(t.Group, "."):
		return t, fmt.Errorf("%q is not a group of the API with custom resources", t.Group)
	case len(validation.IsDNS1035Label(version)) > 0:
		return t, fmt.Errorf("%q is not a version of the API", version)
	case len(validation.IsDNS1035Label(resource)) > 0:
		return t, fmt.Errorf("%q is not a resource: write its plural in lower case", resource)
	}
	for _, name := range t.Path {
		if !field.MatchString(name) {
			return t, fmt.Errorf("%q is not the path of a template: names of fields, with dots between them", path)
		}
	}
	return t, nil
}

// in is the template of an object in CEL.
func (t Template) in(object string) string { return object + ".?" + strings.Join(t.Path, ".?") }

// Policy makes TemplatesPolicy and its bindings, which shipped holds, into those for the template.
func (t Template) Policy(shipped []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	replaced := 0
	change := strings.NewReplacer(strings.ReplaceAll(choice, "OBJECT", "object"), t.in("object"), strings.ReplaceAll(choice, "OBJECT", "oldObject"), t.in("oldObject"))
	name := Policies + t.Resource + "." + t.Group
	for _, object := range shipped {
		if rest, ours := strings.CutPrefix(object.GetName(), TemplatesPolicy); !ours || rest != "" && rest[0] != '-' {
			continue
		}
		made := object.DeepCopy()
		made.SetName(name + strings.TrimPrefix(object.GetName(), TemplatesPolicy))
		spec, _ := made.Object["spec"].(map[string]any)
		if made.GetKind() == "ValidatingAdmissionPolicyBinding" {
			spec["policyName"] = name
		} else {
			spec["matchConstraints"] = map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{t.Group}, "apiVersions": []any{t.Version}, "resources": []any{t.Resource}, "operations": []any{"CREATE", "UPDATE"},
			}}}
			for _, list := range []string{"matchConditions", "variables"} {
				expressions, _ := spec[list].([]any)
				for _, each := range expressions {
					if e, ok := each.(map[string]any); ok {
						before := fmt.Sprint(e["expression"])
						after := change.Replace(before)
						if e["expression"] = after; after != before {
							replaced++
						}
					}
				}
			}
		}
		objects = append(objects, made)
	}
	if len(objects) < 2 || replaced < 2 {
		return nil, errors.New("the installed policy " + TemplatesPolicy + " has another form than expected")
	}
	return objects, nil
}
