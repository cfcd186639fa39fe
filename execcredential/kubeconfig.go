package execcredential

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Names of the cluster extension that holds what a program is told of its cluster. The first is what Kubernetes shipped, and wins;
// the second is what the proposal (KEP-541) called it.
const (
	extensionName         = "client.authentication.k8s.io/exec"
	proposedExtensionName = "exec"
)

const kubeconfigLimit = 16 << 20

// Selection chooses the user and the cluster of a kubeconfig. Its zero value takes those of the current context.
type Selection struct {
	Context string // empty for current-context
	User    string // empty for the user of the context
	Cluster string // empty for the cluster of the context
	// PlainHTTP takes a server without TLS too, for a program whose token may go to it, as to a proxy on this machine. Which servers
	// then get it is said by Options.PlainHTTPHosts of the Pool. Otherwise such a server is a *PlainHTTPError.
	PlainHTTP bool
}

// KubeconfigError says which place of a kubeconfig can't be used, and why.
type KubeconfigError struct {
	Path  string // file; empty if the kubeconfig did not come from one
	Place string // for example `users[name=jane].user.exec.env[0].name`; empty if it is the whole file
	Err   error
}

func (e *KubeconfigError) Error() string {
	message := "kubeconfig"
	if e.Path != "" {
		message += " " + e.Path
	}
	if e.Place != "" {
		message += ": " + e.Place
	}
	return fmt.Sprintf("%s: %v", message, e.Err)
}

func (e *KubeconfigError) Unwrap() error { return e.Err }

// ErrStaticCredentials says that the user of a kubeconfig has a token, a password or a client certificate, which win over a program.
var ErrStaticCredentials = errors.New("the user has static credentials (token, password or client certificate), which are used instead of a program")

// ErrNoExec says that the user of a kubeconfig names no program.
var ErrNoExec = errors.New("the user has no exec section")

// LoadKubeconfig reads one kubeconfig file and returns the config of the selected user's program, with its cluster. Relative paths,
// that of the program and that of the certificate authority, begin at the folder of the file. Errors are *KubeconfigError; they
// wrap *ConfigError, *PlainHTTPError, ErrNoExec, ErrStaticCredentials, or what the file system said.
func LoadKubeconfig(path string, s Selection) (Config, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Config{}, &KubeconfigError{Path: path, Err: err}
	}
	file, err := os.Open(absolute)
	if err != nil {
		return Config{}, &KubeconfigError{Path: path, Err: err}
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, kubeconfigLimit+1))
	if err != nil {
		return Config{}, &KubeconfigError{Path: path, Err: err}
	}
	config, err := ParseKubeconfig(data, filepath.Dir(absolute), s)
	if e := (*KubeconfigError)(nil); errors.As(err, &e) {
		e.Path = path
	}
	return config, err
}

// ParseKubeconfig is LoadKubeconfig for the contents of a file. Folder is where relative paths begin, and must be absolute; if it is
// empty, relative paths are refused.
func ParseKubeconfig(data []byte, folder string, s Selection) (Config, error) {
	if len(data) > kubeconfigLimit {
		return Config{}, &KubeconfigError{Err: fmt.Errorf("is larger than %d MiB", kubeconfigLimit>>20)}
	}
	var document yaml.Node
	var file kubeconfig
	if err := errors.Join(yaml.Unmarshal(data, &document), checkSize(&document)); err != nil {
		return Config{}, &KubeconfigError{Err: short(err)}
	}
	if err := document.Decode(&file); err != nil && !document.IsZero() {
		return Config{}, &KubeconfigError{Err: short(err)}
	}
	if file.Kind != "" && file.Kind != "Config" || file.APIVersion != "" && file.APIVersion != "v1" {
		return Config{}, &KubeconfigError{Err: fmt.Errorf("is a %s of %s, not a Config of v1", clip(file.Kind), clip(file.APIVersion))}
	}
	user, cluster, err := file.choose(s)
	if err != nil {
		return Config{}, err
	}
	place := fmt.Sprintf("users[name=%s].user", clip(user.Name))
	if user.User.static() {
		return Config{}, &KubeconfigError{Place: place, Err: ErrStaticCredentials}
	}
	if user.User.Exec == nil {
		return Config{}, &KubeconfigError{Place: place, Err: ErrNoExec}
	}
	if user.User.AuthProvider != nil {
		return Config{}, &KubeconfigError{Place: place, Err: errors.New("auth-provider and exec can't be used together")}
	}
	config := user.User.Exec.config()
	config.Folder = folder
	if cluster != nil {
		config.Cluster, err = cluster.Cluster.config(folder)
		place := fmt.Sprintf("clusters[name=%s].cluster", clip(cluster.Name))
		if err != nil {
			return Config{}, &KubeconfigError{Place: place, Err: err}
		}
		if u := config.Cluster.url(); u != nil && !s.PlainHTTP {
			if err := (plainHTTPHosts{}).check(u); err != nil {
				return Config{}, &KubeconfigError{Place: place + ".server", Err: err}
			}
		}
	}
	if err := config.Validate(); err != nil {
		return Config{}, &KubeconfigError{Place: place + ".exec", Err: err}
	}
	return config.clone(), nil
}

// quotedValue is what the YAML library quotes of a value that has the wrong type. It may be a secret in the wrong place.
var quotedValue = regexp.MustCompile("`[^`]*`")

// short keeps the first of many errors of a file, without its values.
func short(err error) error {
	const most = 400
	text := quotedValue.ReplaceAllString(err.Error(), "(a value)")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return errors.New(text)
}

func (k kubeconfig) choose(s Selection) (*namedUser, *namedCluster, error) {
	userName, clusterName := s.User, s.Cluster
	if userName == "" || clusterName == "" {
		name := s.Context
		if name == "" {
			name = k.CurrentContext
		}
		current, err := only(k.Contexts, "contexts", name, func(c namedContext) string { return c.Name })
		switch {
		case name == "" && userName == "":
			return nil, nil, &KubeconfigError{Place: "current-context", Err: errors.New("is empty; set it, or select a context or a user")}
		case name == "":
			current = &namedContext{}
		case err != nil:
			return nil, nil, err
		}
		if userName == "" {
			userName = current.Context.User
		}
		if clusterName == "" {
			clusterName = current.Context.Cluster
		}
		if userName == "" {
			return nil, nil, &KubeconfigError{Place: fmt.Sprintf("contexts[name=%s].context.user", clip(name)), Err: errors.New("is empty")}
		}
	}
	user, err := only(k.Users, "users", userName, func(u namedUser) string { return u.Name })
	if err != nil || clusterName == "" {
		return user, nil, err
	}
	cluster, err := only(k.Clusters, "clusters", clusterName, func(c namedCluster) string { return c.Name })
	return user, cluster, err
}

func only[T any](list []T, place, name string, nameOf func(T) string) (*T, error) {
	var found *T
	for i := range list {
		if nameOf(list[i]) != name {
			continue
		}
		if found != nil {
			return nil, &KubeconfigError{Place: fmt.Sprintf("%s[name=%s]", place, clip(name)), Err: errors.New("is there twice")}
		}
		found = &list[i]
	}
	if found == nil {
		return nil, &KubeconfigError{Place: fmt.Sprintf("%s[name=%s]", place, clip(name)), Err: errors.New("does not exist")}
	}
	return found, nil
}

func (c cluster) config(folder string) (Cluster, error) {
	out := Cluster{
		Server:                c.Server,
		TLSServerName:         c.TLSServerName,
		InsecureSkipTLSVerify: c.InsecureSkipTLSVerify,
		ProxyURL:              c.ProxyURL,
		DisableCompression:    c.DisableCompression,
	}
	var err error
	switch {
	case c.CertificateAuthorityData != "":
		if out.CertificateAuthorityData, err = base64.StdEncoding.DecodeString(c.CertificateAuthorityData); err != nil {
			return Cluster{}, fmt.Errorf("certificate-authority-data: %w", err)
		}
	case c.CertificateAuthority != "":
		path := c.CertificateAuthority
		if !filepath.IsAbs(path) {
			if folder == "" {
				return Cluster{}, fmt.Errorf("certificate-authority: %q is relative, and the kubeconfig has no folder", clip(path))
			}
			path = filepath.Join(folder, path)
		}
		if out.CertificateAuthorityData, err = os.ReadFile(path); err != nil {
			return Cluster{}, fmt.Errorf("certificate-authority: %w", err)
		}
	}
	for _, name := range []string{extensionName, proposedExtensionName} {
		for _, e := range c.Extensions {
			if e.Name != name || e.Extension.IsZero() {
				continue
			}
			if out.Extension, err = yamlToJSON(&e.Extension); err != nil {
				return Cluster{}, fmt.Errorf("extensions[name=%s]: %w", name, err)
			}
			return out, nil
		}
	}
	return out, nil
}
