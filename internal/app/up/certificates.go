//go:build unix

package up

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/pki"
)

// authority reads the cluster's own certificate authority; it is nil before the cluster's first start.
func (i installation) authority(now time.Time) (*pki.Authority, error) {
	certificate, err := os.ReadFile(i.authorityFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	key, err := os.ReadFile(i.authorityKeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	authority, err := pki.Load(certificate, key, now)
	if err != nil {
		return nil, fmt.Errorf("%w: restore %s and %s, or remove the folder %s to begin anew", err, i.authorityFile(), i.authorityKeyFile(), i.dir)
	}
	return authority, nil
}

// issueCertificates gives every component the certificates of the table, and a kubeconfig if it is a client. Those that
// still fit are kept. It returns how many were made.
func (i installation) issueCertificates(authority *pki.Authority, now time.Time) (made int, err error) {
	for _, c := range components {
		if c.serving != nil {
			_, fresh, err := ensurePair(authority, *c.serving, i.certificateFile(c.name), i.keyFile(c.name), now)
			if err != nil {
				return made, err
			}
			made += fresh
		}
		if c.caller != nil {
			_, fresh, err := ensurePair(authority, *c.caller, i.callerCertificateFile(c.name), i.callerKeyFile(c.name), now)
			if err != nil {
				return made, err
			}
			made += fresh
		}
		if c.client != nil {
			pair, fresh, err := ensurePair(authority, *c.client, i.clientCertificateFile(c.name), i.clientKeyFile(c.name), now)
			if err != nil {
				return made, err
			}
			made += fresh
			if err := i.writeComponentConfig(c, pair, authority); err != nil {
				return made, err
			}
		}
	}
	return made, home.Keep(i.dir.CAFile(), authority.PEM(), 0o644)
}

func ensurePair(authority *pki.Authority, request pki.Request, certificateFile, keyFile string, now time.Time) (pair pki.Pair, made int, err error) {
	certificate, certificateErr := os.ReadFile(certificateFile)
	key, keyErr := os.ReadFile(keyFile)
	if certificateErr == nil && keyErr == nil {
		pair := pki.Pair{Certificate: certificate, Key: key}
		if authority.Check(pair, request, now) == nil {
			return pair, 0, nil
		}
	}
	pair, err = authority.Issue(request, now, rand.Reader)
	if err == nil {
		err = home.WriteFile(keyFile, pair.Key, 0o600)
	}
	if err == nil {
		err = home.WriteFile(certificateFile, pair.Certificate, 0o644)
	}
	return pair, 1, err
}

func (i installation) writeComponentConfig(c component, pair pki.Pair, authority *pki.Authority) error {
	return writeKubeconfig(i.kubeconfigFile(c.name), c.name,
		&clientcmdapi.Cluster{Server: i.clusterURL(), CertificateAuthorityData: authority.PEM()},
		&clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key})
}

// writeAdmission writes with which certificate the API server calls admission webhooks. It reads these files as it starts, and the
// certificate when it first calls one, by when certify has made it.
func (i installation) writeAdmission() error {
	callers := clientcmdapi.NewConfig()
	// Of any host: a certificate is shown to those alone that request one.
	callers.AuthInfos["*"] = &clientcmdapi.AuthInfo{ClientCertificate: i.callerCertificateFile("webhook"), ClientKey: i.callerKeyFile("webhook")}
	data, err := clientcmd.Write(*callers)
	if err != nil {
		return fmt.Errorf("encode kubeconfig of admission webhooks: %w", err)
	}
	kubeconfig := i.dir.Path("pki", "admission.kubeconfig")
	if err := home.Keep(kubeconfig, data, 0o600); err != nil {
		return err
	}
	configuration := map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
	var plugins []any
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		plugins = append(plugins, map[string]any{"name": plugin, "configuration": map[string]any{
			"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": kubeconfig,
		}})
	}
	configuration["plugins"] = plugins
	data, err = json.Marshal(configuration) // which is YAML
	if err != nil {
		return fmt.Errorf("encode AdmissionConfiguration: %w", err)
	}
	return home.Keep(i.admissionFile(), data, 0o600)
}

// writeAdminConfig writes the kubeconfig for people: the cluster's own, under the name credence.
func (i installation) writeAdminConfig() error {
	config, err := clientcmd.LoadFromFile(i.clusterAdminConfig())
	if err != nil {
		return fmt.Errorf("read the cluster's admin kubeconfig: %w", err)
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return fmt.Errorf("read the cluster's admin kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("read the cluster's admin kubeconfig: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	return writeKubeconfig(i.dir.Kubeconfig(), "credence", config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
}

func writeKubeconfig(path, name string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig of %s: %w", name, err)
	}
	return home.Keep(path, data, 0o600)
}

func (i installation) clusterURL() string {
	return "https://127.0.0.1:" + i.port(clusterPort)
}

// webClient trusts the installation's authority and nothing else.
func webClient(authority []byte) (*http.Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("the certificate authority's file holds no certificate")
	}
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: 5 * time.Second,
			IdleConnTimeout:     time.Second,
		},
	}, nil
}
