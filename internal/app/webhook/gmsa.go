package webhook

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"github.com/credence-id/credence/internal/admission/webhook"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/gmsa/credentialspecs"
)

// WindowsGMSAAnnotations has the annotations read by which pods named a credential spec before there were fields.
const WindowsGMSAAnnotations featuregate.Feature = "WindowsGMSAAnnotations"

// GMSAConfig is how group managed service accounts are given out. Its zero value is fit for use.
type GMSAConfig struct {
	Off            bool // no review about them is answered, and no GMSACredentialSpec is read
	Annotations    bool
	RequireUser    bool
	Controllers    []string // nil: those of Kubernetes
	RandomHostname bool
	Enforcement    string // of webhook.Enforcement; empty: Deny
}

// builtinControllers are the users of Kubernetes that make pods and workloads for others.
func builtinControllers() []string {
	var users []string
	for _, name := range []string{"cronjob", "daemon-set", "deployment", "job", "replicaset", "replication", "statefulset"} {
		users = append(users, authority.AccountName("kube-system", name+"-controller"))
	}
	return users
}

func (c *GMSAConfig) addFlags(flags *pflag.FlagSet) (finish func()) {
	gate := featuregate.NewFeatureGate()
	if err := gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{WindowsGMSAAnnotations: {Default: false, PreRelease: featuregate.Alpha}}); err != nil {
		panic(err) // it is new
	}
	gate.AddFlag(flags)
	on := true
	flags.BoolVar(&on, "gmsa", true, "answer reviews about GMSACredentialSpecs; without it, none of them is read")
	flags.BoolVar(&c.RequireUser, "gmsa-require-user", false, "who makes a workload or a pod must be allowed to use its GMSACredentialSpecs, as its service account must")
	flags.StringSliceVar(&c.Controllers, "gmsa-controller-users", builtinControllers(), "users that --gmsa-require-user does not review: controllers, which make pods for the authors of workloads")
	flags.BoolVar(&c.RandomHostname, "gmsa-random-hostname", false, "give new pods with a GMSACredentialSpec and no host name a random one of 15 characters")
	flags.StringVar(&c.Enforcement, "gmsa-enforcement", string(webhook.Deny), "what becomes of refusals about GMSACredentialSpecs: Deny; Warn, which admits with a warning; or Audit, which admits with a note in the audit log alone")
	return func() { c.Off, c.Annotations = !on, gate.Enabled(WindowsGMSAAnnotations) }
}

func (c GMSAConfig) needs() webhook.GMSA {
	needs := webhook.GMSA{Annotations: c.Annotations, RequireUser: c.RequireUser, Controllers: c.Controllers, Enforcement: webhook.Enforcement(c.Enforcement)}
	if c.Controllers == nil {
		needs.Controllers = builtinControllers()
	}
	if c.RandomHostname {
		needs.Hostname = func() string { return hostname(rand.Reader) }
	}
	return needs
}

// hostname is random, and begins with a letter, as a NetBIOS name that is all digits would not be one.
func hostname(random io.Reader) string {
	var bits [8]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		panic(fmt.Sprintf("read random bytes: %v", err)) // crypto/rand ends the program itself
	}
	return ("g-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bits[:])))[:gmsa.MaxHostname]
}

func registerSpecs(registry prometheus.Registerer, specs *credentialspecs.Follower) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "credence_gmsa_credential_specs",
		Help: "GMSACredentialSpecs that are known from the watch.",
	}, func() float64 { return float64(specs.Len()) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "credence_gmsa_unwatched_seconds",
		Help: "For how long there has been no watch of GMSACredentialSpecs; 0 while there is one.",
	}, func() float64 { return specs.Unwatched().Seconds() }))
}
