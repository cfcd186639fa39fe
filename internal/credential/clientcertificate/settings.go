package clientcertificate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

const (
	// DefaultSigner signs for the API server itself, and never without approval.
	DefaultSigner = "kubernetes.io/kube-apiserver-client"
	// DefaultWait is how long to wait for approval if the user may be prompted, and DefaultUnattendedWait if not: clients
	// kill a program after a minute, and the next run finds the same request.
	DefaultWait           = 10 * time.Minute
	DefaultUnattendedWait = 45 * time.Second
	// DefaultRenewBefore is how long before its end a certificate is to be replaced.
	DefaultRenewBefore = 10 * time.Minute
	// shortest is the shortest life that the API takes.
	shortest = 10 * time.Minute
)

// ErrKeyInDevice: the protocol of exec credentials hands the private key to the client, which a key in a device does not allow.
var ErrKeyInDevice = errors.New("a private key in a device cannot be handed to the client")

// Settings describe the wanted certificate.
type Settings struct {
	// User is the common name, by which the API server knows the user; required.
	User string
	// Groups are the organizations of the subject.
	Groups []string
	// Signer is the name of the signer; empty: DefaultSigner.
	Signer string
	// Usages as the API names them; nil: "client auth" and "digital signature". "client auth" must be one.
	Usages []string
	// Duration is how long the certificate is to be valid, at least 10 minutes; 0: the signer's default. Signers may give another.
	Duration time.Duration
	// Key is the place of an existing private key. None can be used: New returns the reason.
	Key string
	// Wait is how long to wait for approval; 0: DefaultWait, or DefaultUnattendedWait.
	Wait time.Duration
	// RenewBefore is how long before its end a certificate is replaced without waiting: it is served while the request for the
	// next one waits. 0: DefaultRenewBefore. Give the Provider the same as its Margin.
	RenewBefore time.Duration

	// Now is the clock, and Pause waits until a time has passed, or the context ends with its error; required to obtain.
	Now   func() time.Time
	Pause func(context.Context, time.Duration) error
}

// completed returns s with its defaults, or what is wrong with it.
func (s Settings) completed() (Settings, error) {
	if s.Key != "" {
		return s, keyRefusal(s.Key)
	}
	if s.User == "" {
		return s, errors.New("no user: give the user name that the certificate is to stand for")
	}
	s.Signer = cmp.Or(s.Signer, DefaultSigner)
	if s.Usages == nil {
		s.Usages = []string{"client auth", "digital signature"}
	}
	if !slices.Contains(s.Usages, "client auth") {
		return s, fmt.Errorf("usages %s lack %q, without which no server takes the certificate", strings.Join(s.Usages, ", "), "client auth")
	}
	if s.Duration != 0 && s.Duration < shortest {
		return s, fmt.Errorf("duration is %s, and the shortest that the API takes is %s", s.Duration, shortest)
	}
	if s.Duration > math.MaxInt32*time.Second {
		return s, fmt.Errorf("duration is %s, which the API cannot express", s.Duration)
	}
	if s.Wait < 0 || s.RenewBefore < 0 {
		return s, errors.New("a time to wait for approval, or to renew before the end, is negative")
	}
	s.Groups, s.Usages = sorted(s.Groups), sorted(s.Usages)
	if slices.Contains(s.Groups, "") {
		return s, errors.New("a group is empty")
	}
	s.RenewBefore = cmp.Or(s.RenewBefore, DefaultRenewBefore)
	return s, nil
}

// deviceGuide describes how to use a key that stays in its device.
const deviceGuide = "https://github.com/credence-id/credence/blob/main/docs/howto/keys-in-a-device.md"

// devices are the prefixes of names of keys in devices: RFC 7512 has pkcs11, and key management services have their own.
var devices = map[string]string{
	"pkcs11": "a PKCS#11 token", "engine": "a PKCS#11 token", "yubikey": "a PKCS#11 token", "piv": "a PKCS#11 token",
	"tpm": "a TPM", "tpm2": "a TPM", "tpmkey": "a TPM", "handle": "a TPM",
	"kms": "a key management service", "awskms": "a key management service", "gcpkms": "a key management service",
	"cloudkms": "a key management service", "azurekms": "a key management service", "azurekeyvault": "a key management service",
	"hashivault": "a key management service",
}

// keyRefusal is the reason why an existing key is not used.
func keyRefusal(place string) error {
	scheme, _, _ := strings.Cut(strings.ToLower(place), ":")
	device := devices[scheme]
	if strings.HasPrefix(place, "/dev/tpm") {
		device = "a TPM"
	}
	if device == "" {
		return errors.New("a key cannot be given: one is made for each certificate, so that it lives no longer than that; " +
			"a key that is to stay in its device is used as in " + deviceGuide)
	}
	return fmt.Errorf("%w: it is in %s, and kubectl and other clients take a key only as PEM. A Go program uses it where it is "+
		"by the library execcredential, as in %s. For this source give no key: it makes one for each certificate", ErrKeyInDevice, device, deviceGuide)
}

func sorted(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}

// Source gets certificates for one user. It implements credential.Source.
type Source struct {
	settings Settings
	access   kubeconfig.Access
	connect  Connect
}

// New returns the source for settings and the cluster of the caller's kubeconfig, or an error if the settings are invalid. It makes
// no requests. connect may be nil if only the key is of interest.
func New(settings Settings, access kubeconfig.Access, connect Connect) (*Source, error) {
	settings, err := settings.completed()
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	return &Source{settings: settings, access: access, connect: connect}, nil
}

// Key implements credential.Source.
func (s *Source) Key() map[string]string {
	key := map[string]string{"source": "client-certificate", "commonName": s.settings.User, "signer": s.settings.Signer, "usages": strings.Join(s.settings.Usages, ", ")}
	if len(s.settings.Groups) > 0 {
		// Groups may hold any character: they must not run into each other.
		groups, err := json.Marshal(s.settings.Groups)
		if err != nil {
			panic(err) // strings marshal
		}
		key["groups"] = string(groups)
	}
	if s.settings.Duration > 0 {
		key["duration"] = s.settings.Duration.String()
	}
	maps.Copy(key, s.access.Key())
	return key
}

// Wait is how long Obtain waits for approval at most. Other processes wait for the same certificate: give the Provider a
// LockTimeout that is longer.
func (s *Source) Wait(interactive bool) time.Duration {
	switch {
	case s.settings.Wait > 0:
		return s.settings.Wait
	case interactive:
		return DefaultWait
	}
	return DefaultUnattendedWait
}

// RenewBefore is the Margin that the Provider of this source needs.
func (s *Source) RenewBefore() time.Duration { return s.settings.RenewBefore }
