package profile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// New is "profile".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile COMMAND",
		Short: "Make profiles of service accounts from pods, look at them, and give them to manifests",
	}
	cmd.AddCommand(newFromPods(terminal, kube), newHarden(terminal), newLint(terminal))
	return command.Group(cmd)
}

// object is an object of a file, as JSON.
type object struct {
	file, kind, apiVersion string
	text                   []byte
}

// into decodes the object. Unknown fields are errors.
func (o object) into(v any) error {
	faults, err := kjson.UnmarshalStrict(o.text, v)
	if err = errors.Join(append(faults, err)...); err != nil {
		return fmt.Errorf("%s: %w", o.file, err)
	}
	return nil
}

// read reads the objects of files, and of the lists in them. The name - is standard input.
func read(in io.Reader, files []string) ([]object, error) {
	var objects []object
	for _, file := range files {
		text, err := command.ReadFile(in, file)
		if err != nil {
			return nil, err
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				document, err = yaml.YAMLToJSON(document)
			}
			if err == nil {
				objects, err = add(objects, file, document)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return objects, nil
}

func add(objects []object, file string, text []byte) ([]object, error) {
	if string(text) == "null" {
		return objects, nil
	}
	var found struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &found); err != nil || found.Kind == "" {
		return nil, errors.New("it is not an object of Kubernetes in YAML or JSON")
	}
	if !strings.HasSuffix(found.Kind, "List") {
		return append(objects, object{file, found.Kind, found.APIVersion, text}), nil
	}
	for _, item := range found.Items {
		var err error
		if objects, err = add(objects, file, item); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// definitions returns the profiles and the templates among objects, and how many others there are.
func definitions(objects []object) (profiles []accounts.ServiceAccountProfile, templates []accounts.SecurityContextTemplate, others int, err error) {
	for _, o := range objects {
		switch {
		case o.apiVersion == accounts.SchemeGroupVersion.String() && o.kind == "ServiceAccountProfile":
			profiles = append(profiles, accounts.ServiceAccountProfile{})
			err = o.into(&profiles[len(profiles)-1])
		case o.apiVersion == accounts.SchemeGroupVersion.String() && o.kind == "SecurityContextTemplate":
			templates = append(templates, accounts.SecurityContextTemplate{})
			err = o.into(&templates[len(templates)-1])
		default:
			others++
		}
		if err != nil {
			return nil, nil, 0, err
		}
	}
	return profiles, templates, others, nil
}

// manifest is an object as YAML, without what is empty in each new one.
func manifest(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	if status, ok := fields["status"].(map[string]any); ok && len(status) == 0 {
		delete(fields, "status")
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return yaml.Marshal(fields)
}
