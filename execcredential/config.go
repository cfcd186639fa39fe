package execcredential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Versions of the wire format. The output of a program must have the version that its Config names.
const (
	V1      = "client.authentication.k8s.io/v1"
	V1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// InteractiveMode is a program's use of standard input.
type InteractiveMode string

const (
	// Never gives the program no standard input, and no terminal: it can't prompt, and must not try.
	Never InteractiveMode = "Never"
	// IfAvailable gives it standard input and the terminal if standard input is one and not used for something else.
	IfAvailable InteractiveMode = "IfAvailable"
	// Always does not run the program without a terminal.
	Always InteractiveMode = "Always"
)

// Config names a program that hands out credentials, and what it is passed. It is the exec section of a kubeconfig user, or what the user has
// instead of one, with the cluster that the credential is for. It is copied wherever it goes in: changing it afterwards changes nothing.
type Config struct {
	// Static are credentials of the kubeconfig itself. With them no program runs, and Command must be empty.
	Static Static
	// Command is the program: a name that is looked up in PATH, or a path. Required without Static.
	Command string
	// Args are its arguments.
	Args []string
	// Env are environment variables on top of those of this process. Of equal names the last one counts.
	Env []EnvVar
	// APIVersion is V1 or V1Beta1. Required.
	APIVersion string
	// InteractiveMode is the program's use of standard input. Required for V1; with V1Beta1 empty means IfAvailable.
	InteractiveMode InteractiveMode
	// InstallHint is shown to the user when the program is missing. Control characters are replaced.
	InstallHint string
	// ProvideClusterInfo passes Cluster to the program, and makes the credential one for this cluster only.
	ProvideClusterInfo bool
	// Cluster is what the credential is for.
	Cluster Cluster
	// Folder is where a relative path in Command begins: the folder of the kubeconfig. It must be absolute. A relative path without
	// a Folder is refused: programs of the current directory are never run.
	Folder string
	// StdinUnavailable is why standard input can't be given away although it is a terminal, as in "used by the manifest reader".
	// Empty if it can.
	StdinUnavailable string
	// Timeout and InteractiveTimeout are those of Options, for this program. Zero means those of the Pool. Only NoTimeout may be
	// negative.
	Timeout, InteractiveTimeout time.Duration
	// Policy limits which programs may run, besides the Policy of the Pool: both must allow it.
	Policy Policy
}

// EnvVar is an environment variable.
type EnvVar struct{ Name, Value string }

// Cluster is what a program is passed about the server, as in spec.cluster of ExecCredential. Only Server is always there.
type Cluster struct {
	// Server is its URL.
	Server string
	// TLSServerName is the name to expect in its certificate, if it isn't the host of Server.
	TLSServerName string
	// InsecureSkipTLSVerify turns off the verification of its certificate.
	InsecureSkipTLSVerify bool
	// CertificateAuthorityData has its certificate authorities in PEM; empty for those of the system.
	CertificateAuthorityData []byte
	// ProxyURL is the proxy on the way to it.
	ProxyURL string
	// DisableCompression turns off the compression of responses.
	DisableCompression bool
	// Extension is JSON for the program, as the cluster's extension client.authentication.k8s.io/exec holds it. Empty if there is
	// none.
	Extension json.RawMessage
}

// Validate returns a *ConfigError for the first thing that is wrong with c, or nil. It does not look for the program.
func (c Config) Validate() error {
	if err := checkTimeouts(c.Timeout, c.InteractiveTimeout); err != nil {
		return err
	}
	if len(c.Cluster.Extension) > 0 && !json.Valid(c.Cluster.Extension) {
		return &ConfigError{Field: "cluster.extension", Reason: "is not JSON"}
	}
	if !c.Static.empty() {
		if c.Command != "" {
			return &ConfigError{Field: "command", Reason: "is set beside static credentials, which would be used instead; remove one of them"}
		}
		return c.Static.validate()
	}
	switch c.APIVersion {
	case V1, V1Beta1:
	case "":
		return &ConfigError{Field: "apiVersion", Reason: "is empty; set it to " + V1}
	default:
		return &ConfigError{Field: "apiVersion", Reason: fmt.Sprintf("is %q; supported are %s and %s", clip(c.APIVersion), V1, V1Beta1)}
	}
	switch {
	case c.Command == "":
		return &ConfigError{Field: "command", Reason: "is empty; set it to the name or path of the program"}
	case strings.ContainsRune(c.Command, 0):
		return &ConfigError{Field: "command", Reason: "contains a NUL character"}
	case isRelativePath(c.Command) && c.Folder == "":
		return &ConfigError{Field: "command", Reason: fmt.Sprintf("%q is relative, and there is no kubeconfig folder that it could be relative to; use an absolute path, or a name in PATH", clip(c.Command))}
	case c.Folder != "" && !filepath.IsAbs(c.Folder):
		return &ConfigError{Field: "folder", Reason: fmt.Sprintf("%q is not absolute", clip(c.Folder))}
	}
	for i, arg := range c.Args {
		if strings.ContainsRune(arg, 0) {
			return &ConfigError{Field: fmt.Sprintf("args[%d]", i), Reason: "contains a NUL character"}
		}
	}
	for i, e := range c.Env {
		switch {
		case e.Name == "":
			return &ConfigError{Field: fmt.Sprintf("env[%d].name", i), Reason: "is empty"}
		case strings.ContainsAny(e.Name, "=\x00"):
			return &ConfigError{Field: fmt.Sprintf("env[%d].name", i), Reason: fmt.Sprintf("%q contains '=' or a NUL character", clip(e.Name))}
		case strings.ContainsRune(e.Value, 0):
			return &ConfigError{Field: fmt.Sprintf("env[%d].value", i), Reason: "contains a NUL character"}
		}
	}
	switch c.interactiveMode() {
	case Never, IfAvailable, Always:
	case "":
		return &ConfigError{Field: "interactiveMode", Reason: "is empty; " + V1 + " requires one of Never, IfAvailable, Always"}
	default:
		return &ConfigError{Field: "interactiveMode", Reason: fmt.Sprintf("is %q; use one of Never, IfAvailable, Always", clip(string(c.InteractiveMode)))}
	}
	return c.Policy.Validate()
}

func (c Config) interactiveMode() InteractiveMode {
	if c.InteractiveMode == "" && c.APIVersion == V1Beta1 {
		return IfAvailable
	}
	return c.InteractiveMode
}

// String names the program and nothing else: arguments and variables may hold secrets.
func (c Config) String() string {
	if !c.Static.empty() {
		return "static credentials"
	}
	return fmt.Sprintf("exec credential program %q (%s), %d arguments, %d variables", c.Command, c.APIVersion, len(c.Args), len(c.Env))
}

// Format is String for every verb but %w and %p: for them fmt calls no method of a value without Error, or of a struct, and prints the fields. So it
// does for a Config in an unexported field of another struct: keep a *Source there.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue is String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for JSON too.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Format is [redacted] for every verb.
func (s Static) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText is [redacted], for JSON too.
func (s Static) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Format names the variable for every verb, and not its value.
func (e EnvVar) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.redacted()) }

// MarshalText names the variable, and not its value, for JSON too.
func (e EnvVar) MarshalText() ([]byte, error) { return []byte(e.redacted()), nil }

func (e EnvVar) redacted() string { return e.Name + "=" + redacted }

// Format names the server for every verb: a proxy's URL and the extension may hold secrets.
func (c Cluster) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.redacted()) }

// MarshalText names the server, for JSON too.
func (c Cluster) MarshalText() ([]byte, error) { return []byte(c.redacted()), nil }

func (c Cluster) redacted() string {
	if u := c.url(); u != nil {
		return "cluster " + u.Redacted()
	}
	return "cluster a server that is no URL"
}

func (c Config) clone() Config {
	c.Args = slices.Clone(c.Args)
	c.Env = slices.Clone(c.Env)
	c.InstallHint = sanitize(c.InstallHint)
	c.Policy = c.Policy.clone()
	c.Static.CertificateData, c.Static.KeyData = bytes.Clone(c.Static.CertificateData), bytes.Clone(c.Static.KeyData)
	c.Cluster.CertificateAuthorityData = bytes.Clone(c.Cluster.CertificateAuthorityData)
	c.Cluster.Extension = bytes.Clone(c.Cluster.Extension)
	return c
}
