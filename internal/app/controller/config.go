package controller

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Config is what the controller needs. Issuer, one key store and one place of documents are required; everything else works
// at its zero value.
type Config struct {
	Issuer     string // https URL; see identity.ParseIssuer
	Kubeconfig string // empty: the pod's own

	KeysDir      string // folder with the ring
	KeysSecret   string // namespace/name of a Secret with the ring
	KeysInterval time.Duration

	DocumentsDir       string // folder that the documents are published in
	DocumentsConfigMap string // namespace/name of the ConfigMap that they are published in
	PublishCheckURL    string // below which relying parties find the documents; takes the place of the former
	PublishCheckCAFile string // PEM of the authorities to trust for it; empty: those of this machine

	Settings keys.Settings

	LeaseNamespace string // empty: credence-system

	serving.Health

	Log *slog.Logger // nil: slog.Default()
}

const (
	defaultLeaseNamespace = "credence-system"
)

// checked is a Config whose text has become values.
type checked struct {
	Config
	issuer                identity.Issuer
	keysSecret, documents types.NamespacedName
}

// check fills in what is unset, and names the first flag that is missing, wrong, or contradicts another.
func (c Config) check() (checked, error) {
	c.LeaseNamespace = cmp.Or(c.LeaseNamespace, defaultLeaseNamespace)
	c.KeysInterval = cmp.Or(c.KeysInterval, keyring.DefaultInterval)
	c.Log = cmp.Or(c.Log, slog.Default())
	out := checked{Config: c}
	var err error
	if c.Issuer == "" {
		return out, errors.New("--issuer is missing: give the https URL that tokens name as their issuer")
	}
	if out.issuer, err = identity.ParseIssuer(c.Issuer); err != nil {
		return out, fmt.Errorf("--issuer: %w", err)
	}
	if (c.KeysDir == "") == (c.KeysSecret == "") {
		return out, errors.New("exactly one of --keys-secret (a Secret with the signing keys) and --keys-dir (a folder with them) is required")
	}
	if c.KeysSecret != "" {
		if out.keysSecret, err = splitName(c.KeysSecret); err != nil {
			return out, fmt.Errorf("--keys-secret: %w", err)
		}
	}
	if (c.DocumentsDir == "") == (c.DocumentsConfigMap == "") {
		return out, errors.New("exactly one of --documents-configmap and --documents-dir is required: no key signs before the published documents show it")
	}
	if c.DocumentsConfigMap != "" {
		if out.documents, err = splitName(c.DocumentsConfigMap); err != nil {
			return out, fmt.Errorf("--documents-configmap: %w", err)
		}
	}
	if c.PublishCheckURL != "" {
		if _, err := identity.ParseIssuer(c.PublishCheckURL); err != nil {
			return out, fmt.Errorf("--publish-check-url: %w", err)
		}
	}
	if c.PublishCheckCAFile != "" && c.PublishCheckURL == "" {
		return out, errors.New("--publish-check-ca-file needs --publish-check-url")
	}
	if out.Settings, err = c.Settings.Complete(); err != nil {
		return out, fmt.Errorf("the key settings contradict each other: %w", err)
	}
	if longest := out.Settings.Staleness / 2; c.KeysInterval < time.Second || c.KeysInterval > longest {
		return out, fmt.Errorf("--keys-refresh-interval %s must be from 1s to %s, half of --keys-staleness", c.KeysInterval, longest)
	}
	err = out.Health.Complete()
	return out, err
}

func splitName(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q must be NAMESPACE/NAME", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
