package execcredential

import "go.yaml.in/yaml/v3"

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
