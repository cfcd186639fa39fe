package execcredential

import (
	"encoding/base64"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is the part of a kubeconfig file that matters here. Other fields are ignored.
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
	from    origin
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
	from origin
}

type user struct {
	Token                 string     `yaml:"token"`
	TokenFile             string     `yaml:"tokenFile"`
	Username              string     `yaml:"username"`
	Password              string     `yaml:"password"`
	ClientCertificate     string     `yaml:"client-certificate"`
	ClientCertificateData string     `yaml:"client-certificate-data"`
	ClientKey             string     `yaml:"client-key"`
	ClientKeyData         string     `yaml:"client-key-data"`
	As                    string     `yaml:"as"`
	AuthProvider          *yaml.Node `yaml:"auth-provider"`
	Exec                  *execEntry `yaml:"exec"`
}

// credentials are what client-go prefers to a program: a token, a user name, or a certificate with its key. Without a program, half of it is
// a mistake that Config.Validate finds.
func (u user) credentials(from origin) (Static, error) {
	certificate, key := u.ClientCertificate+u.ClientCertificateData, u.ClientKey+u.ClientKeyData
	wins := u.Token != "" || u.TokenFile != "" || u.Username != "" || certificate != "" && key != ""
	if !wins && (u.Exec != nil || u.AuthProvider != nil) {
		return Static{}, nil
	}
	s := Static{Token: u.Token, Username: u.Username, Password: u.Password}
	for _, f := range []struct {
		field, path string
		to          *string
	}{{"tokenFile", u.TokenFile, &s.TokenFile}, {"client-certificate", u.ClientCertificate, &s.CertificateFile}, {"client-key", u.ClientKey, &s.KeyFile}} {
		if f.path == "" {
			continue
		}
		path, err := from.resolve(f.field, f.path)
		if err != nil {
			return Static{}, err
		}
		*f.to = path
	}
	var err error
	if s.CertificateData, err = base64.StdEncoding.DecodeString(u.ClientCertificateData); err != nil {
		return Static{}, fmt.Errorf("client-certificate-data: %w", err)
	}
	if s.KeyData, err = base64.StdEncoding.DecodeString(u.ClientKeyData); err != nil {
		return Static{}, errors.New("client-key-data is not base64") // the decoder's error is about the key
	}
	return s, nil
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
