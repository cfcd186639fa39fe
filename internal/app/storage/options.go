package storage

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"k8s.io/apimachinery/pkg/labels"
)

// defaultPrefix is the --etcd-prefix of the API server.
const defaultPrefix = "/registry/authentication.gardener.cloud"

// The kinds of storages.
const (
	inCluster = "cluster"
	inEtcd    = "etcd"
	embedded  = "embedded"
)

// options are the flags of the command copy.
type options struct {
	from, to, kubeconfig, prefix, serverPods string
	tls                                      transport.TLSInfo
}

// place is where objects are stored.
type place struct {
	kind    string
	folder  string   // of an embedded etcd
	servers []string // of an etcd
}

// check returns the two storages, or all that is wrong with the flags.
func (o *options) check() (from, to place, err error) {
	from, fromErr := parsePlace("--from", o.from)
	to, toErr := parsePlace("--to", o.to)
	errs := []error{fromErr, toErr}
	switch {
	case fromErr != nil || toErr != nil:
	case from.kind == inCluster && to.kind == inCluster, from.kind == embedded && from.folder == to.folder:
		errs = append(errs, errors.New("--from and --to are the same storage"))
	case from.kind == embedded:
		if _, err := os.Stat(filepath.Join(from.folder, "data", "member")); err != nil {
			errs = append(errs, fmt.Errorf("--from: %s has no embedded etcd: %w", from.folder, err))
		}
	}
	if _, _, err := o.pods(); err != nil {
		errs = append(errs, err)
	}
	if (o.tls.CertFile == "") != (o.tls.KeyFile == "") {
		errs = append(errs, errors.New("--etcd-certfile and --etcd-keyfile must be given together"))
	}
	return from, to, errors.Join(errs...)
}

// pods returns where the pods of the API server are, and how they are found. Without the flag the selector is empty.
func (o *options) pods() (namespace, selector string, err error) {
	if o.serverPods == "" {
		return "", "", nil
	}
	namespace, selector, _ = strings.Cut(o.serverPods, "/")
	// An empty selector would find all pods, the one that copies among them.
	if parsed, err := labels.Parse(selector); err != nil || parsed.Empty() || namespace == "" {
		return "", "", fmt.Errorf("--server-pods %q must be NAMESPACE/LABEL=VALUE,LABEL=VALUE", o.serverPods)
	}
	return namespace, selector, nil
}

func parsePlace(flag, text string) (place, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == inCluster:
		return place{kind: inCluster}, nil
	case kind == embedded && rest != "":
		return place{kind: embedded, folder: filepath.Clean(rest)}, nil
	case kind == inEtcd && rest != "":
		servers := strings.Split(rest, ",")
		for _, server := range servers {
			if u, err := url.Parse(server); err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "unix" {
				return place{}, fmt.Errorf("%s: %q must be an https, http or unix URL", flag, server)
			}
		}
		return place{kind: inEtcd, servers: servers}, nil
	}
	return place{}, fmt.Errorf("%s %q must be cluster, embedded:FOLDER or etcd:URL,URL", flag, text)
}
