package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// limit bounds a file.
const limit = 16 << 20

// document is what is read of a kubeconfig.
type document struct {
	CurrentContext string `yaml:"current-context"`
	Clusters       []struct {
		Name    string  `yaml:"name"`
		Cluster cluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string `yaml:"name"`
		User user   `yaml:"user"`
	} `yaml:"users"`
	Contexts []struct {
		Name    string  `yaml:"name"`
		Context context `yaml:"context"`
	} `yaml:"contexts"`
}

type cluster struct {
	Server        string `yaml:"server"`
	TLSServerName string `yaml:"tls-server-name"`
	Insecure      bool   `yaml:"insecure-skip-tls-verify"`
	CAFile        string `yaml:"certificate-authority"`
	CAData        string `yaml:"certificate-authority-data"`
	ProxyURL      string `yaml:"proxy-url"`
}

type user struct {
	Exec *program `yaml:"exec"`
}

type context struct {
	Cluster   string `yaml:"cluster"`
	User      string `yaml:"user"`
	Namespace string `yaml:"namespace"`
}

// merged is the content of several files; of a name, the first one wins.
type merged struct {
	current  string
	clusters map[string]cluster
	users    map[string]user
	contexts map[string]context
}

// load reads the files that exist, and returns which these are. One that was named must exist.
func load(files []string, named bool) (merged, []string, error) {
	all := merged{clusters: map[string]cluster{}, users: map[string]user{}, contexts: map[string]context{}}
	var read []string
	for _, path := range files {
		data, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) && !named {
			continue
		}
		if err != nil {
			return merged{}, nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
		}
		var d document
		if err := yaml.Unmarshal(shorten(data), &d); err != nil {
			return merged{}, nil, fmt.Errorf("read kubeconfig %s: it is not YAML of a kubeconfig%s", path, lines(err))
		}
		all.add(d, filepath.Dir(path))
		read = append(read, path)
	}
	return all, read, nil
}

func readFile(path string) ([]byte, error) {
	// To open a pipe is to wait for its writer: it is looked at first. One that was given (/dev/fd/63) could not be read twice.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && len(data) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, err
}

// lines names the lines of an error, without their content: that may be secret.
func lines(err error) string {
	where := err.Error()
	if i := strings.Index(where, "line "); i >= 0 {
		number, _, _ := strings.Cut(where[i+len("line "):], ":")
		return ", at line " + number
	}
	return ""
}

// add adds a file whose relative paths begin at a folder.
func (m *merged) add(d document, folder string) {
	m.current = cmp.Or(m.current, d.CurrentContext)
	for _, c := range d.Clusters {
		if _, there := m.clusters[c.Name]; !there {
			c.Cluster.CAFile = within(folder, c.Cluster.CAFile)
			m.clusters[c.Name] = c.Cluster
		}
	}
	for _, u := range d.Users {
		if _, there := m.users[u.Name]; !there {
			if exec := u.User.Exec; exec != nil && strings.ContainsRune(exec.Command, filepath.Separator) {
				exec.Command = within(folder, exec.Command)
			}
			m.users[u.Name] = u.User
		}
	}
	for _, c := range d.Contexts {
		if _, there := m.contexts[c.Name]; !there {
			m.contexts[c.Name] = c.Context
		}
	}
}

func within(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// choose returns what a context leads to, and the program of its user, if it has one.
func (m merged) choose(name string, files []string) (Access, *program, error) {
	none := func(format string, args ...any) (Access, *program, error) {
		return Access{}, nil, fmt.Errorf("read kubeconfig %s: %w", strings.Join(files, ", "), fmt.Errorf(format, args...))
	}
	name = cmp.Or(name, m.current)
	if name == "" {
		return none("it has no current context: give one")
	}
	c, ok := m.contexts[name]
	if !ok {
		return none("there is no context %q", name)
	}
	to, ok := m.clusters[c.Cluster]
	if !ok {
		return none("context %q names cluster %q, which is not there", name, c.Cluster)
	}
	as, ok := m.users[c.User]
	if !ok {
		return none("context %q names user %q, which is not there", name, c.User)
	}
	server, err := url.Parse(to.Server)
	if err != nil || server.Host == "" {
		return none("cluster %q has a server that is not a URL", c.Cluster)
	}
	if server.User != nil {
		return none("cluster %q has a server with a user name in it: credentials belong to users", c.Cluster)
	}
	if server.Scheme != "https" {
		return none("cluster %q has the server %q: it must be an https URL, or credentials would travel in the clear", c.Cluster, to.Server)
	}
	if to.ProxyURL != "" && !isProxy(to.ProxyURL) {
		// Not quoted: it may have a password.
		return none("cluster %q has an invalid proxy-url: it must look like http://proxy:3128, https://proxy or socks5://proxy", c.Cluster)
	}
	c.Namespace = cmp.Or(c.Namespace, defaultNamespace)
	return Access{
		Files: files, Context: name, User: c.User, Namespace: c.Namespace, Server: to.Server, insecure: to.Insecure,
		tlsServerName: to.TLSServerName, proxyURL: to.ProxyURL, caFile: to.CAFile, ca: digest([]byte(to.CAData)),
	}, as.Exec, nil
}
