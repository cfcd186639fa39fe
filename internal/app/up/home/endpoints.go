//go:build unix

package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/credence-id/credence/internal/identity"
)

// Endpoints is what other programs need to know of an installation: endpoints.json. Paths are absolute. Components holds
// the processes that run now, in the order in which they were started; it is empty when nothing runs.
type Endpoints struct {
	Kubeconfig string          `json:"kubeconfig"`
	CAFile     string          `json:"caFile"`
	Issuer     identity.Issuer `json:"issuer"`
	JWKS       string          `json:"jwks"`
	// APIServer is the URL of kube-apiserver, through which the aggregated server is reached too.
	APIServer string `json:"apiServer"`
	// Node is the name of the cluster's node while there is one.
	Node string `json:"node,omitempty"`
	// Guard is true while the node has a guard of its container runtime.
	Guard      bool        `json:"guard,omitempty"`
	Supervisor *Component  `json:"supervisor,omitempty"`
	Components []Component `json:"components"`
}

// Component is a running process.
type Component struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	LogFile string `json:"logFile"`
}

// NewEndpoints returns the Endpoints of an installation in which nothing runs.
func NewEndpoints(dir Dir, config Config) Endpoints {
	return Endpoints{
		Kubeconfig: dir.Kubeconfig(),
		CAFile:     dir.CAFile(),
		Issuer:     config.Issuer,
		JWKS:       config.Issuer.JWKSURL(),
		APIServer:  fmt.Sprintf("https://127.0.0.1:%d", config.Port),
		Components: []Component{},
	}
}

// Component returns the running process of that name.
func (e Endpoints) Component(name string) (Component, bool) {
	for _, component := range e.Components {
		if component.Name == name {
			return component, true
		}
	}
	return Component{}, false
}

// EndpointsFile is where Endpoints are written.
func (d Dir) EndpointsFile() string { return d.Path("endpoints.json") }

// SaveEndpoints writes endpoints.json.
func (d Dir) SaveEndpoints(endpoints Endpoints) error {
	return WriteJSON(d.EndpointsFile(), endpoints, 0o600)
}

// LoadEndpoints reads endpoints.json; found reports whether it exists.
func (d Dir) LoadEndpoints() (endpoints Endpoints, found bool, err error) {
	data, err := readBounded(d.EndpointsFile(), maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return Endpoints{}, false, nil
	}
	if err != nil {
		return Endpoints{}, false, fmt.Errorf("read %s: %w", d.EndpointsFile(), cause(err))
	}
	endpoints, err = parseEndpoints(data)
	if err != nil {
		return Endpoints{}, false, fmt.Errorf("%s is damaged (%w): remove it", d.EndpointsFile(), err)
	}
	return endpoints, true, nil
}

func parseEndpoints(data []byte) (Endpoints, error) {
	var endpoints Endpoints
	if err := json.Unmarshal(data, &endpoints); err != nil {
		return Endpoints{}, err
	}
	for _, component := range endpoints.Components {
		// 0, 1 and negative numbers mean groups and init to kill(2).
		if component.PID <= 1 {
			return Endpoints{}, fmt.Errorf("component %q has the process id %d", component.Name, component.PID)
		}
	}
	return endpoints, nil
}
