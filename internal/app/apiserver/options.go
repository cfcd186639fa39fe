// Package apiserver wires the program credence-server apiserver: flags become options, options become stores, issuer and
// server, which run until the context ends. It decides nothing.
package apiserver

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/app/serving/tracing"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
)

// storagePrefix is where all objects lie in etcd.
const storagePrefix = "/registry/authentication.gardener.cloud"

// Options are the flags of the program.
type Options struct {
	Recommended *genericoptions.RecommendedOptions

	Issuer           string
	TakeOverFrom     string
	GardenID         string
	Lifetimes        identity.Lifetimes
	KeysDir          string
	KeysSecret       string
	KeysInterval     time.Duration
	SignerSocket     string
	SignerLedger     string
	Settings         keys.Settings // of an external signer's keys
	Storage          string
	SignRecords      bool
	EtcdDataDir      string
	PublishDir       string
	PublishConfigMap string
	TracingConfig    string // file
}

// NewOptions returns the defaults: everything binds to loopback, and nothing is trusted that was not named.
func NewOptions(codecs serializer.CodecFactory) *Options {
	lifetimes, _ := identity.Lifetimes{}.Complete()
	o := &Options{
		Recommended:  genericoptions.NewRecommendedOptions(storagePrefix, codecs.LegacyCodec(apiserver.GroupVersions()...)),
		Lifetimes:    lifetimes,
		KeysInterval: keyring.DefaultInterval,
		SignerLedger: "credence-system/credence-signer-ledger",
	}
	r := o.Recommended
	r.Etcd.StorageConfig.EncodeVersioner = apiserver.GroupVersions()
	r.SecureServing.BindAddress = net.ParseIP("127.0.0.1")
	r.SecureServing.BindPort = 6444
	r.SecureServing.ServerCert.CertDirectory = ""
	r.SecureServing.ServerCert.PairName = ""
	r.Features.EnableProfiling = false
	// Requests come through kube-apiserver, whose priorities have been applied by then.
	r.Features.EnablePriorityAndFairness = false
	r.Audit.LogOptions.MaxSize, r.Audit.LogOptions.MaxBackups = 100, 5
	// The cluster decides on all users, its administrators included: if they were let pass here, it would stay hidden that
	// this server can't reach it any more.
	r.Authorization.AlwaysAllowGroups = nil
	// Spans would have the name of kube-apiserver's.
	r.EgressSelector, r.Traces = nil, nil
	apiserver.CountInQuotas(r)
	apiserver.FollowOwnPolicies(r)
	return o
}

// Flags returns the flags by section, in the order in which help shows them.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	tokens := sets.FlagSet("tokens")
	tokens.StringVar(&o.Issuer, "issuer", o.Issuer, "URL of the issuer, the iss claim of every token: https, without query, fragment, userinfo or trailing slash. Must not be the issuer of the cluster's service accounts. Required.")
	tokens.StringVar(&o.GardenID, "garden-id", o.GardenID, "The claim gardener.cloud.garden.id of every token. Defaults to the uid of the namespace kube-system.")
	tokens.DurationVar(&o.Lifetimes.Min, "token-min-duration", o.Lifetimes.Min, "Shortest lifetime of a token; a request for less is refused. At least 10m.")
	tokens.DurationVar(&o.Lifetimes.Default, "token-default-duration", o.Lifetimes.Default, "Lifetime of a token whose request names none.")
	tokens.DurationVar(&o.Lifetimes.Max, "token-max-duration", o.Lifetimes.Max, "Longest lifetime of a token; a request for more is shortened to it, with a warning.")
	ring := sets.FlagSet("keys")
	ring.StringVar(&o.KeysSecret, "keys-secret", o.KeysSecret, "NAMESPACE/NAME of the Secret with the ring of signing keys. Made, with new keys, where it is missing. This or --keys-dir is required.")
	ring.StringVar(&o.KeysDir, "keys-dir", o.KeysDir, "Folder with the ring of signing keys, private to this user (0700, files 0600); replicas on one machine may share it. Made, with new keys, where it is missing.")
	ring.DurationVar(&o.KeysInterval, "keys-refresh-interval", o.KeysInterval, "How often the ring of signing keys is read, besides whenever it is known to have changed. No token is signed with a ring that was read longer ago than the staleness of the key controller's settings (1m).")
	signer := sets.FlagSet("external signer")
	signer.StringVar(&o.SignerSocket, "signer-socket", o.SignerSocket, "Absolute path of the unix socket of an external signer (the plugin of a KMS or an HSM, k8s.io/externaljwt v1), which holds the keys and chooses among them. Takes the place of --keys-secret and --keys-dir.")
	signer.StringVar(&o.SignerLedger, "signer-ledger-configmap", o.SignerLedger, "NAMESPACE/NAME of an existing ConfigMap with the time since which each of its keys is published. Only this server may write it.")
	signer.DurationVar(&o.Settings.PublishPeriod, "key-publish-period", keys.DefaultPublishPeriod, "For how long relying parties may not have noticed a new key of the external signer: a token under a key that has not been published for that long, and for what clocks and replicas may be late, is withheld. For a ring of keys it is a flag of the key controller.")
	signer.DurationVar(&o.Settings.Staleness, "keys-staleness", keys.DefaultStaleness, "How late a replica may learn of a new key of the external signer.")
	signer.DurationVar(&o.Settings.ClockSkew, "clock-skew", keys.DefaultClockSkew, "How wrong a clock may be, for the keys of the external signer.")
	signer.DurationVar(&o.Settings.MaxAge, "max-age", keys.DefaultMaxAge, "The longest max-age with which the documents are served (--max-age of the discovery server), for the keys of the external signer.")
	documents := sets.FlagSet("discovery documents")
	documents.StringVar(&o.PublishConfigMap, "publish-configmap", o.PublishConfigMap, "NAMESPACE/NAME of an existing ConfigMap that the discovery documents are written to.")
	documents.StringVar(&o.PublishDir, "publish-dir", o.PublishDir, "Folder that the discovery documents are written to.")
	storage := sets.FlagSet("etcd")
	storage.BoolVar(&o.SignRecords, "sign-records", o.SignRecords, "With --storage="+inCluster+": sign the records of an earlier version once, and refuse all that are not signed from then on. Stop API servers of earlier versions before. Without effect where this was done.")
	storage.StringVar(&o.Storage, "storage", o.Storage, "Where objects are stored: "+inCluster+" (records in the API of the cluster that serves this server), "+inEtcd+" (--etcd-servers) or "+embedded+" (--etcd-data-dir). Defaults to the one whose flag is given.")
	storage.StringVar(&o.TakeOverFrom, "take-over-from", o.TakeOverFrom, "The issuer of an installation that is gone for good, whose storage is to be this one's. The storage of any other installation is refused.")
	storage.StringVar(&o.EtcdDataDir, "etcd-data-dir", o.EtcdDataDir, "Folder of the embedded etcd, which listens on a unix socket in it. Used where --etcd-servers is not given.")
	tracing.AddFlag(sets.FlagSet("tracing"), &o.TracingConfig)
	o.Recommended.Etcd.AddFlags(storage)
	o.Recommended.SecureServing.AddFlags(sets.FlagSet("serving"))
	o.Recommended.Authentication.AddFlags(sets.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(sets.FlagSet("authorization"))
	o.Recommended.Audit.AddFlags(sets.FlagSet("audit"))
	o.Recommended.Features.AddFlags(sets.FlagSet("features"))
	o.Recommended.CoreAPI.AddFlags(sets.FlagSet("kubernetes API"))
	o.Recommended.Admission.AddFlags(sets.FlagSet("admission"))
	return sets
}

// checked are the options whose text has become a value.
type checked struct {
	issuer, former                      identity.Issuer
	lifetimes                           identity.Lifetimes
	configMap, keysSecret, signerLedger types.NamespacedName
	settings                            keys.Settings
}

// check returns all that is wrong with the options, each with its flag and what to do.
func (o *Options) check() (checked, error) {
	var c checked
	var errs []error
	var err error
	if o.Issuer == "" {
		errs = append(errs, errors.New("--issuer is required: the https URL at which relying parties find the discovery documents"))
	} else if c.issuer, err = identity.ParseIssuer(o.Issuer); err != nil {
		errs = append(errs, fmt.Errorf("--issuer: %w", err))
	}
	if o.TakeOverFrom != "" {
		if c.former, err = identity.ParseIssuer(o.TakeOverFrom); err != nil {
			errs = append(errs, fmt.Errorf("--take-over-from: %w", err))
		}
	}
	if c.lifetimes, err = o.Lifetimes.Complete(); err != nil {
		errs = append(errs, fmt.Errorf("--token-min-duration, --token-default-duration, --token-max-duration: %w", err))
	}
	if given := slices.DeleteFunc([]string{o.KeysSecret, o.KeysDir, o.SignerSocket}, func(place string) bool { return place == "" }); len(given) != 1 {
		errs = append(errs, errors.New("exactly one of --keys-secret (a Secret for the signing keys), --keys-dir (a folder for them) and --signer-socket (an external signer that holds them) is required"))
	}
	if o.SignerSocket != "" {
		if c.signerLedger, err = splitName(o.SignerLedger); err != nil {
			errs = append(errs, fmt.Errorf("--signer-ledger-configmap: %w", err))
		}
		if c.settings, err = o.Settings.Complete(); err != nil {
			errs = append(errs, fmt.Errorf("--key-publish-period, --keys-staleness, --clock-skew, --max-age: %w", err))
		}
	}
	if o.KeysSecret != "" {
		if c.keysSecret, err = splitName(o.KeysSecret); err != nil {
			errs = append(errs, fmt.Errorf("--keys-secret: %w", err))
		}
	}
	if o.KeysInterval < time.Second || o.KeysInterval > keys.DefaultStaleness/2 {
		errs = append(errs, fmt.Errorf("--keys-refresh-interval %s must be from 1s to %s", o.KeysInterval, keys.DefaultStaleness/2))
	}
	if o.PublishDir != "" && filepath.Clean(o.PublishDir) == filepath.Clean(o.KeysDir) {
		errs = append(errs, errors.New("--publish-dir must not be --keys-dir: one is public, the other is secret"))
	}
	if o.PublishConfigMap == "" && o.PublishDir == "" {
		errs = append(errs, errors.New("--publish-configmap or --publish-dir is required: relying parties must be able to learn the keys"))
	}
	if o.PublishConfigMap != "" {
		if c.configMap, err = splitName(o.PublishConfigMap); err != nil {
			errs = append(errs, fmt.Errorf("--publish-configmap: %w", err))
		}
	}
	if err := o.checkStorage(); err != nil {
		errs = append(errs, err)
	}
	cert := o.Recommended.SecureServing.ServerCert.CertKey
	if cert.CertFile == "" || cert.KeyFile == "" {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file are required"))
	}
	return c, errors.Join(errs...)
}

// The values of --storage.
const (
	inCluster = "cluster"
	inEtcd    = "etcd"
	embedded  = "embedded"
)

// checkStorage makes sure that the flags name one place to store in.
func (o *Options) checkStorage() error {
	given := map[string]bool{inEtcd: len(o.Recommended.Etcd.StorageConfig.Transport.ServerList) > 0, embedded: o.EtcdDataDir != ""}
	if given[inEtcd] == given[embedded] && (given[inEtcd] || o.Storage != inCluster) {
		return errors.New("exactly one of --storage=cluster (records in this cluster's API), --etcd-servers (an external etcd) and --etcd-data-dir (an embedded one) is required")
	}
	switch o.Storage {
	case inCluster:
		if given[inEtcd] || given[embedded] {
			return errors.New("--storage=cluster needs no etcd: leave out --etcd-servers and --etcd-data-dir")
		}
		if o.Recommended.Etcd.EncryptionProviderConfigFilepath != "" {
			return errors.New("--encryption-provider-config is for etcd: with --storage=cluster, configure the encryption of records.storage.credence.dev in the cluster")
		}
	case inEtcd, embedded:
		if !given[o.Storage] {
			return fmt.Errorf("--storage=%s contradicts --etcd-servers or --etcd-data-dir: leave out one of them", o.Storage)
		}
	case "":
	default:
		return fmt.Errorf("--storage %q must be %s, %s or %s", o.Storage, inCluster, inEtcd, embedded)
	}
	return nil
}

func splitName(text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%q must be NAMESPACE/NAME", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
