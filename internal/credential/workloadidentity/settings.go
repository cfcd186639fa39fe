package workloadidentity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

// Settings describe the wanted token.
type Settings struct {
	// Name of the WorkloadIdentity; required.
	Name string
	// Namespace of it; empty: the one of the kubeconfig's context, or of the pod.
	Namespace string
	// Duration is how long the token is to be valid; 0: the server's default.
	Duration time.Duration
	// Context is the object on whose behalf the token is used: serviceaccount/NAME. Empty: none.
	Context string
}

// WithCluster returns s with the cluster's own configuration: the field workloadIdentity of the extension
// client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves several clusters.
//
//	{"workloadIdentity": {"name": "deployer", "namespace": "my-team", "duration": "30m", "context": "serviceaccount/deployer"}}
//
// It sets only fields that s leaves open: a different value than that of s is an error, or any cluster could have the token of any
// identity. It names no file: those belong to the machine. A configuration without the field is ignored, but an unknown field of
// workloadIdentity is an error.
func (s Settings) WithCluster(raw json.RawMessage) (Settings, error) {
	var config struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Duration  string `json:"duration"`
		Context   string `json:"context"`
	}
	if err := credential.FromCluster(raw, "workloadIdentity", &config); err != nil {
		return s, err
	}
	err := cmp.Or(
		credential.DurationLeftOpen("workloadIdentity", &s.Duration, config.Duration, "30m"),
		credential.LeftOpen("name", &s.Name, config.Name),
		credential.LeftOpen("namespace", &s.Namespace, config.Namespace),
		credential.LeftOpen("context", &s.Context, config.Context),
	)
	return s, err
}

// Object is an object on whose behalf a token is requested.
type Object struct{ APIVersion, Kind, Resource, Name string }

// object parses Context; nil if it is empty.
func (s Settings) object() (*Object, error) {
	if s.Context == "" {
		return nil, nil
	}
	kind, name, _ := strings.Cut(s.Context, "/")
	switch strings.ToLower(kind) {
	case "serviceaccount", "serviceaccounts", "sa":
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("context %q: %w", s.Context, err)
		}
		return &Object{APIVersion: "v1", Kind: "ServiceAccount", Resource: "serviceaccounts", Name: name}, nil
	}
	return nil, fmt.Errorf("context %q is not of the form serviceaccount/NAME", s.Context)
}

// checkName refuses what would be another path than the one of an object.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case name == "." || name == ".." || strings.ContainsAny(name, "/%"):
		return fmt.Errorf("%q is not a name", name)
	}
	return nil
}

// Source gets tokens of one WorkloadIdentity. It implements credential.Source.
type Source struct {
	settings Settings
	object   *Object
	access   kubeconfig.Access
	connect  Connect
}

// New returns the source for settings and the cluster of the caller's kubeconfig, or an error if the settings are invalid. It makes
// no requests. connect may be nil if only the key is of interest.
func New(settings Settings, access kubeconfig.Access, connect Connect) (*Source, error) {
	if err := checkName(settings.Name); err != nil {
		return nil, fmt.Errorf("WorkloadIdentity: %w", err)
	}
	settings.Namespace = cmp.Or(settings.Namespace, access.Namespace)
	if err := checkName(settings.Namespace); err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	if settings.Duration < 0 {
		return nil, fmt.Errorf("duration is %s, it must be longer than 0", settings.Duration)
	}
	object, err := settings.object()
	if err != nil {
		return nil, err
	}
	return &Source{settings: settings, object: object, access: access, connect: connect}, nil
}

// Key implements credential.Source.
func (s *Source) Key() map[string]string {
	key := map[string]string{"source": "workload-identity", "namespace": s.settings.Namespace, "name": s.settings.Name}
	if s.settings.Duration > 0 {
		key["duration"] = s.settings.Duration.String()
	}
	if s.object != nil {
		key["context"] = s.object.Resource + "/" + s.object.Name
	}
	maps.Copy(key, s.access.Key())
	return key
}
