package execcredential

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Names of the cluster extension that holds what a program is passed about its cluster. The first is what Kubernetes shipped, and wins;
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
	// PlainHTTP takes a server without TLS too, for a program whose token may go to it, as to a proxy on this machine. Options.PlainHTTPHosts of
	// the Pool lists the servers that then get it. Otherwise such a server is a *PlainHTTPError.
	PlainHTTP bool
}

// KubeconfigError names the place of a kubeconfig that can't be used, and the reason.
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

// ErrNoExec reports that the user of a kubeconfig names no program, and has no credentials of its own.
var ErrNoExec = errors.New("the user has no exec section, and no token, password or client certificate")

// ParseKubeconfig is LoadKubeconfig for the contents of one file. Folder is where relative paths begin, and must be absolute; if it is
// empty, relative paths are refused.
func ParseKubeconfig(data []byte, folder string, s Selection) (Config, error) {
	file, err := parseKubeconfig(data, origin{folder: folder})
	if err != nil {
		return Config{}, &KubeconfigError{Err: err}
	}
	return file.config(s)
}

func parseKubeconfig(data []byte, from origin) (kubeconfig, error) {
	var document yaml.Node
	var file kubeconfig
	if len(data) > kubeconfigLimit {
		return file, fmt.Errorf("is larger than %d MiB", kubeconfigLimit>>20)
	}
	if err := errors.Join(yaml.Unmarshal(data, &document), checkSize(&document)); err != nil {
		return file, short(err)
	}
	if err := document.Decode(&file); err != nil && !document.IsZero() {
		return file, short(err)
	}
	if file.Kind != "" && file.Kind != "Config" || file.APIVersion != "" && file.APIVersion != "v1" {
		return file, fmt.Errorf("is a %s of %s, not a Config of v1", clip(file.Kind), clip(file.APIVersion))
	}
	for i := range file.Users {
		file.Users[i].from = from
	}
	for i := range file.Clusters {
		file.Clusters[i].from = from
	}
	return file, nil
}

// config returns the program, or the credentials, of the selected user, with the cluster.
func (k kubeconfig) config(s Selection) (Config, error) {
	user, cluster, err := k.choose(s)
	if err != nil {
		return Config{}, err
	}
	at := func(place string, err error) error {
		return &KubeconfigError{Path: user.from.path, Place: fmt.Sprintf("users[name=%s].user%s", clip(user.Name), place), Err: err}
	}
	if user.User.As != "" {
		return Config{}, at(".as", errors.New("impersonation is not supported, and without it the user would have other rights"))
	}
	var config Config
	place := ".exec"
	switch static, err := user.User.credentials(user.from); {
	case err != nil:
		return Config{}, at("", err)
	case !static.empty():
		config.Static, place = static, ""
	case user.User.Exec == nil:
		return Config{}, at("", ErrNoExec)
	case user.User.AuthProvider != nil:
		return Config{}, at("", errors.New("auth-provider and exec can't be used together"))
	default:
		config = user.User.Exec.config()
		config.Folder = user.from.folder
	}
	if cluster != nil {
		config.Cluster, err = cluster.Cluster.config(cluster.from)
		place := fmt.Sprintf("clusters[name=%s].cluster", clip(cluster.Name))
		if err != nil {
			return Config{}, &KubeconfigError{Path: cluster.from.path, Place: place, Err: err}
		}
		if u := config.Cluster.url(); u != nil && !s.PlainHTTP {
			if err := (plainHTTPHosts{}).check(u); err != nil {
				return Config{}, &KubeconfigError{Path: cluster.from.path, Place: place + ".server", Err: err}
			}
		}
	}
	if err := config.Validate(); err != nil {
		return Config{}, at(place, err)
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
		name := cmp.Or(s.Context, k.CurrentContext)
		current, err := only(k.Contexts, "contexts", name, func(c namedContext) string { return c.Name })
		switch {
		case name == "" && userName == "":
			return nil, nil, &KubeconfigError{Place: "current-context", Err: errors.New("is empty; set it, or select a context or a user")}
		case name == "":
			current = &namedContext{}
		case err != nil:
			return nil, nil, err
		}
		userName = cmp.Or(userName, current.Context.User)
		clusterName = cmp.Or(clusterName, current.Context.Cluster)
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

func (c cluster) config(from origin) (Cluster, error) {
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
		path, err := from.resolve("certificate-authority", c.CertificateAuthority)
		if err != nil {
			return Cluster{}, err
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
