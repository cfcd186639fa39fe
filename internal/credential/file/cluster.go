package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/credence-id/credence/internal/credential"
)

// Settings name the file.
type Settings struct {
	// Path of the file; empty where the cluster names it.
	Path string
	// Folder is where the file is that the cluster names.
	Folder string
}

// WithCluster returns the path of the file: the one of s, or the one in Folder that a cluster's own configuration names by the field
// file of the extension client.authentication.k8s.io/exec in the kubeconfig's cluster, so that one user entry serves several clusters.
//
//	{"file": {"name": "production"}}
//
// A configuration without the field is ignored, but an unknown field of file is an error, and so is a name where s has a
// path: it would be another file.
func (s Settings) WithCluster(raw json.RawMessage) (string, error) {
	var config struct {
		Name string `json:"name"`
	}
	if err := credential.FromCluster(raw, "file", &config); err != nil {
		return "", err
	}
	switch {
	case s.Path != "" && s.Folder != "":
		return "", errors.New("a path and a folder are given: only one of them can have the file")
	case s.Path != "" && config.Name != "":
		return "", credential.Contradiction("file", s.Path, config.Name)
	case s.Path != "" || s.Folder == "":
		return s.Path, nil
	case config.Name == "":
		return "", fmt.Errorf("the cluster does not name its file in %s: its extension client.authentication.k8s.io/exec in the kubeconfig must have file.name, and the user's exec provideClusterInfo", s.Folder)
	case strings.HasPrefix(config.Name, ".") || strings.ContainsAny(config.Name, `/\:`) || !filepath.IsLocal(config.Name):
		return "", fmt.Errorf("the configuration of the cluster has file.name %q, which is not the name of a file in a folder", config.Name)
	}
	return filepath.Join(s.Folder, config.Name), nil
}
