package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// plane is a running plane, as `credence up` describes it in endpoints.json.
type plane struct {
	dir string

	Kubeconfig string    `json:"kubeconfig"`
	CAFile     string    `json:"caFile"`
	JWKS       string    `json:"jwks"`
	APIServer  string    `json:"apiServer"`
	Supervisor process   `json:"supervisor"`
	Components []process `json:"components"`
}

type process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

// startup is what `credence up` writes of each start, in startup.json. Parts overlap.
type startup struct {
	Kind    string
	Seconds float64
	Parts   []struct {
		Name    string
		Seconds float64
	}
}

func readPlane(dir string) (plane, error) {
	p := plane{dir: dir}
	return p, readJSON(filepath.Join(dir, "endpoints.json"), &p)
}

func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

// pid returns the process of a component.
func (p plane) pid(component string) (int, error) {
	for _, c := range p.Components {
		if c.Name == component {
			return c.PID, nil
		}
	}
	return 0, fmt.Errorf("the plane in %s has no component %s", p.dir, component)
}

// credence runs the command line of the build.
func (s settings) credence(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, filepath.Join(s.bin, "credence"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("credence %v: %w\n%s", args, err, out)
	}
	return nil
}
