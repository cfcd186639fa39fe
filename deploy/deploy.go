// Package deploy holds what Credence installs in a cluster besides its processes: namespace, service accounts, roles and
// bindings. Out come the objects of base/*.yaml, and of options/*.yaml that were chosen, in the order in which they can be applied; nothing here talks to a cluster.
package deploy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed base/*.yaml options/*.yaml
var files embed.FS

// Option is a set of objects that belongs to a flag of a component, and to nothing without it.
type Option string

const (
	GMSAAnnotations Option = "gmsa-annotations"  // --feature-gates=WindowsGMSAAnnotations=true of the webhook
	GMSARequireUser Option = "gmsa-require-user" // --gmsa-require-user of the webhook
	ReviewPaths     Option = "review-paths"      // the webhook without --client-ca-file
	Registration    Option = "registration"      // credence-server certificates, which credence up has no need of
	Certificates    Option = "certificates"      // what it needs beside Registration without --ca-file
	// ImageCredentials is for nodes whose kubelets run credence-image-credentials: --image-registries of credence up.
	ImageCredentials Option = "image-credentials"
	Registry         Option = "registry"   // credence-registry, which credence up has no part of
	AgentPods        Option = "agent-pods" // --pods-port of the agent
)

// File is a file of manifests, such as base/50-agent.yaml, with its objects.
type File struct {
	Name    string
	Objects []*unstructured.Unstructured
}

// Files returns all manifests, those of all options among them.
func Files() ([]File, error) {
	var all []File
	for _, pattern := range []string{"base/*.yaml", "options/*.yaml"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, fmt.Errorf("list manifests: %w", err)
		}
		for _, name := range names {
			objects, err := read([]string{name})
			if err != nil {
				return nil, err
			}
			all = append(all, File{name, objects})
		}
	}
	return all, nil
}

// landscapes are options for clusters with the API of another project: an admin applies them, and no component has a flag for them.
var landscapes = []string{"options/cluster-api.yaml", "options/gardener-extensions.yaml", "options/gardener.yaml"}

// Manifests returns the objects to apply, ordered: what is always installed, and what belongs to options. Each call returns new
// objects.
func Manifests(options ...Option) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "base/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	for _, option := range options {
		names = append(names, option.file())
	}
	return read(names)
}

// Others returns the objects of the options that belong to flags and are not chosen.
func Others(chosen ...Option) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "options/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	return read(slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(landscapes, name) || slices.ContainsFunc(chosen, func(o Option) bool { return o.file() == name })
	}))
}

// Reported changes those of objects that decide about group managed service accounts: refusals become what actions name (Warn, Audit), and
// a webhook that does not answer hinders nothing.
func Reported(objects []*unstructured.Unstructured, actions ...string) error {
	for _, object := range objects {
		switch object.GetKind() {
		case "ValidatingAdmissionPolicyBinding":
			if strings.HasPrefix(object.GetName(), "credence-gmsa") {
				if err := unstructured.SetNestedStringSlice(object.Object, actions, "spec", "validationActions"); err != nil {
					return fmt.Errorf("change %s: %w", object.GetName(), err)
				}
			}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			webhooks, _ := object.Object["webhooks"].([]any)
			for _, each := range webhooks {
				if webhook, ok := each.(map[string]any); ok && strings.Contains(fmt.Sprint(webhook["name"]), ".gmsa") {
					webhook["failurePolicy"] = "Ignore"
				}
			}
		}
	}
	return nil
}

func (o Option) file() string { return "options/" + string(o) + ".yaml" }

func read(names []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("decode manifest %s: %w", name, err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}
