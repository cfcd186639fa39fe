package execcredential

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is the part of a kubeconfig file that matters here. Other fields are none of this package's business.
type kubeconfig struct {
	APIVersion     string         `yaml:"apiVersion"`
	Kind           string         `yaml:"kind"`
	CurrentContext string         `yaml:"current-context"`
	Contexts       []namedContext `yaml:"contexts"`
	Clusters       []namedCluster `yaml:"clusters"`
	Users          []namedUser    `yaml:"users"`
}

type namedContext struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster string `yaml:"cluster"`
		User    string `yaml:"user"`
	} `yaml:"context"`
}

type namedCluster struct {
	Name    string  `yaml:"name"`
	Cluster cluster `yaml:"cluster"`
}

type cluster struct {
	Server                   string           `yaml:"server"`
	TLSServerName            string           `yaml:"tls-server-name"`
	InsecureSkipTLSVerify    bool             `yaml:"insecure-skip-tls-verify"`
	CertificateAuthority     string           `yaml:"certificate-authority"`
	CertificateAuthorityData string           `yaml:"certificate-authority-data"`
	ProxyURL                 string           `yaml:"proxy-url"`
	DisableCompression       bool             `yaml:"disable-compression"`
	Extensions               []namedExtension `yaml:"extensions"`
}

type namedExtension struct {
	Name      string    `yaml:"name"`
	Extension yaml.Node `yaml:"extension"`
}

type namedUser struct {
	Name string `yaml:"name"`
	User user   `yaml:"user"`
}

type user struct {
	Token                 string     `yaml:"token"`
	TokenFile             string     `yaml:"tokenFile"`
	Username              string     `yaml:"username"`
	ClientCertificate     string     `yaml:"client-certificate"`
	ClientCertificateData string     `yaml:"client-certificate-data"`
	ClientKey             string     `yaml:"client-key"`
	ClientKeyData         string     `yaml:"client-key-data"`
	AuthProvider          *yaml.Node `yaml:"auth-provider"`
	Exec                  *execEntry `yaml:"exec"`
}

// static is what client-go prefers to a program: a token, a user name, or a certificate with its key.
func (u user) static() bool {
	certificate, key := u.ClientCertificate+u.ClientCertificateData, u.ClientKey+u.ClientKeyData
	return u.Token != "" || u.TokenFile != "" || u.Username != "" || certificate != "" && key != ""
}

type execEntry struct {
	APIVersion         string   `yaml:"apiVersion"`
	Command            string   `yaml:"command"`
	Args               []string `yaml:"args"`
	Env                []envVar `yaml:"env"`
	InstallHint        string   `yaml:"installHint"`
	ProvideClusterInfo bool     `yaml:"provideClusterInfo"`
	InteractiveMode    string   `yaml:"interactiveMode"`
}

type envVar struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

func (e execEntry) config() Config {
	c := Config{
		Command:            e.Command,
		Args:               e.Args,
		APIVersion:         e.APIVersion,
		InteractiveMode:    InteractiveMode(e.InteractiveMode),
		InstallHint:        e.InstallHint,
		ProvideClusterInfo: e.ProvideClusterInfo,
	}
	for _, v := range e.Env {
		c.Env = append(c.Env, EnvVar(v))
	}
	return c
}

// yamlToJSON writes a YAML value as the JSON that Kubernetes' own clients make of it: keys in order, and the booleans of YAML 1.1.
func yamlToJSON(node *yaml.Node) (json.RawMessage, error) {
	likeYAML11(node)
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err
	}
	value, err := jsonValue(value, 0)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// likeYAML11 gives unquoted scalars the meaning that they have for Kubernetes: yes, no, on and off are booleans, dates are strings.
func likeYAML11(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		switch node.ShortTag() {
		case "!!str":
			switch node.Value {
			case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
				node.Tag, node.Value = "!!bool", "true"
			case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
				node.Tag, node.Value = "!!bool", "false"
			}
		case "!!timestamp":
			node.Tag = "!!str"
		}
	}
	for _, child := range node.Content {
		likeYAML11(child)
	}
}

func jsonValue(value any, depth int) (any, error) {
	if depth > 200 {
		return nil, errors.New("is nested too deeply")
	}
	var err error
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			if v[key], err = jsonValue(v[key], depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, element := range v {
			name, err := jsonKey(key)
			if err != nil {
				return nil, err
			}
			if out[name], err = jsonValue(element, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		for i := range v {
			if v[i], err = jsonValue(v[i], depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("has a number that JSON can't write")
		}
		return v, nil
	case string, bool, int, int64, uint64, nil:
		return v, nil
	default:
		return nil, fmt.Errorf("has a %T, which JSON can't write", value)
	}
}

func jsonKey(key any) (string, error) {
	switch k := key.(type) {
	case string:
		return k, nil
	case bool:
		return strconv.FormatBool(k), nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case uint64:
		return strconv.FormatUint(k, 10), nil
	case float64:
		return strconv.FormatFloat(k, 'g', -1, 64), nil
	default:
		return "", fmt.Errorf("has a key of type %T, which JSON can't write", key)
	}
}
