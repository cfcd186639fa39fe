package execcredential

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// origin is where a part of a kubeconfig comes from.
type origin struct {
	path   string // of the file, as it was given; empty if it did not come from one
	folder string // where relative paths begin; empty for none
}

// resolve returns the path that a field names.
func (o origin) resolve(field, path string) (string, error) {
	switch {
	case filepath.IsAbs(path):
		return path, nil
	case o.folder == "":
		return "", fmt.Errorf("%s: %q is relative, and the kubeconfig has no folder", field, clip(path))
	}
	return filepath.Join(o.folder, path), nil
}

// LoadKubeconfig reads a kubeconfig and returns the config of the selected user, with its cluster: the user's program, or the token, password
// or client certificate that the kubeconfig has for the user, which wins. Path is one file, or several as the variable KUBECONFIG has them; if it
// is empty, it is that variable, or else .kube/config of the user's folder. Of several files the first one that has a context, a cluster, a
// user or the current context counts, and those that do not exist are passed over, but not all. Relative paths begin at the folder of the file
// that has them. Errors are *KubeconfigError; they wrap *ConfigError, *PlainHTTPError, ErrNoExec, or an error of the file system.
func LoadKubeconfig(path string, s Selection) (Config, error) {
	path, err := kubeconfigPath(path)
	if err != nil {
		return Config{}, &KubeconfigError{Path: path, Err: err}
	}
	files := []string{path}
	if _, err := os.Stat(path); err != nil { // the name of one file may look like a list
		files = filepath.SplitList(path)
	}
	merged, found, missing := kubeconfig{}, false, error(nil)
	for i, name := range files {
		if name == "" || slices.Contains(files[:i], name) {
			continue
		}
		file, err := readKubeconfig(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = cmp.Or(missing, error(&KubeconfigError{Path: name, Err: err}))
		case err != nil:
			return Config{}, &KubeconfigError{Path: name, Err: err}
		default:
			merged.add(file)
			found = true
		}
	}
	if !found {
		return Config{}, cmp.Or(missing, error(&KubeconfigError{Path: path, Err: fs.ErrNotExist}))
	}
	config, err := merged.config(s)
	if e := (*KubeconfigError)(nil); errors.As(err, &e) && e.Path == "" {
		e.Path = path
	}
	return config, err
}

func kubeconfigPath(path string) (string, error) {
	if path = cmp.Or(path, os.Getenv("KUBECONFIG")); path != "" {
		return path, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".kube", "config"), err
}

func readKubeconfig(path string) (kubeconfig, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return kubeconfig{}, err
	}
	file, err := os.Open(absolute)
	if err != nil {
		return kubeconfig{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, kubeconfigLimit+1))
	if err != nil {
		return kubeconfig{}, err
	}
	return parseKubeconfig(data, origin{path: path, folder: filepath.Dir(absolute)})
}

// add appends what a later file has, but for what is there already. A name that one file has twice stays so, and is refused.
func (k *kubeconfig) add(later kubeconfig) {
	k.CurrentContext = cmp.Or(k.CurrentContext, later.CurrentContext)
	k.Contexts = added(k.Contexts, later.Contexts, func(c namedContext) string { return c.Name })
	k.Clusters = added(k.Clusters, later.Clusters, func(c namedCluster) string { return c.Name })
	k.Users = added(k.Users, later.Users, func(u namedUser) string { return u.Name })
}

func added[T any](list, later []T, name func(T) string) []T {
	known := map[string]bool{}
	for _, entry := range list {
		known[name(entry)] = true
	}
	for _, entry := range later {
		if !known[name(entry)] {
			list = append(list, entry)
		}
	}
	return list
}
