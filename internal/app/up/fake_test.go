//go:build unix

package up

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/pki"
	"github.com/credence-id/credence/test/testkit"
)

// The fakes stand for the components: they take the same arguments, listen on the same ports with the same
// certificates, and answer the requests of up. The variable CREDENCE_FAKE_<NAME> makes one misbehave:
//
//	full     ends at once, as on a full disk
//	stubborn ignores SIGTERM
//	unready  never becomes ready
//	nodeless can have no node here
const misbehaviour = "CREDENCE_FAKE_"

// eventsVariable names a file to which the fakes append when they start and stop.
const eventsVariable = "CREDENCE_FAKE_EVENTS"

func runFake(program string, arguments []string) error {
	name := strings.TrimPrefix(program, "credence-")
	if program == "credence-server" {
		name, arguments = arguments[0], arguments[1:]
	}
	if arguments[0] == "check-node" || arguments[0] == "clean-node" {
		return fakeNodeCommand(arguments)
	}
	set := map[string]*string{}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	for _, known := range []string{
		"dir", "port", "controller-manager-port", "shared-port", "secure-port", "bind-address", "tls-cert-file", "tls-private-key-file",
		"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "etcd-data-dir", "keys-dir", "issuer",
		"publish-configmap", "cluster-name", "csi-driver", "image-credentials", "image-registries", "guard", "guard-template", "guard-allow", "delivery", "audit-log-path", "audit-log-maxsize", "audit-log-maxbackup", "documents-configmap", "documents-cache", "health-port",
		"apiserver-arg", "client-ca-file", "client-name",
	} {
		set[known] = flags.String(known, "", "")
	}
	node := flags.Bool("node", false, "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch os.Getenv(misbehaviour + strings.ToUpper(name)) {
	case "full":
		fmt.Fprintln(os.Stderr, "E0102 15:04:05.000000    1234 store.go:56] write wal: no space left on device")
		return errors.New("the store cannot be opened")
	case "stubborn":
		ctx = context.Background()
		signal.Ignore(syscall.SIGTERM)
	case "unready":
		<-ctx.Done()
		return nil
	}
	event("start " + name)
	defer event("stop " + name)
	switch name {
	case "devcluster":
		if *node {
			if err := fakeNode(*set["dir"], *set["guard"] != ""); err != nil {
				return err
			}
			event("node shares " + *set["shared-port"])
			event("node is guarded by " + *set["guard"] + " with " + *set["guard-template"] + " and " + *set["guard-allow"])
			event("node pulls by " + *set["image-credentials"] + " from " + *set["image-registries"])
		}
		return fakeCluster(ctx, *set["dir"], *set["port"])
	case "apiserver":
		return fakeAPIServer(ctx, *set["secure-port"], *set["keys-dir"], *set["tls-cert-file"], *set["tls-private-key-file"])
	case "controller":
		return serve(ctx, *set["health-port"], *set["tls-cert-file"], *set["tls-private-key-file"], readyMux())
	default:
		return fakeDiscovery(ctx, set)
	}
}

// fakeNodeCommand runs the commands of devcluster from before its start and after its death.
func fakeNodeCommand(arguments []string) error {
	event(arguments[0] + " " + arguments[2])
	if arguments[0] == "check-node" && os.Getenv(misbehaviour+"DEVCLUSTER") == "nodeless" {
		fmt.Fprintln(os.Stderr, "a line before it")
		return errors.New("a node needs runc, not found in PATH: run apt-get install runc")
	}
	return nil
}

// fakeNode lists processes, all of which are this one.
func fakeNode(dir string, guarded bool) error {
	var running []home.Component
	for _, name := range partsOf(guarded) {
		running = append(running, home.Component{Name: name, PID: os.Getpid()})
	}
	return home.WriteJSON(filepath.Join(dir, "node", "processes.json"), map[string]any{"processes": running}, 0o600)
}

func event(text string) {
	file, err := os.OpenFile(os.Getenv(eventsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	_, _ = fmt.Fprintln(file, text)
}

// serve answers over TLS on a port of 127.0.0.1 until ctx is done.
func serve(ctx context.Context, port, certificateFile, keyFile string, handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ServeTLS(listener, certificateFile, keyFile); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func readyMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	return mux
}

// fakeAPIServer has the signing key, which it makes at its first start.
func fakeAPIServer(ctx context.Context, port, keys, certificateFile, keyFile string) error {
	if _, err := os.Stat(filepath.Join(keys, "key.pem")); err != nil {
		if err := makeSigningKey(keys); err != nil {
			return err
		}
	}
	return serve(ctx, port, certificateFile, keyFile, readyMux())
}

// fakeDiscovery serves what fakeAPIServer published; it is ready once there is something.
func fakeDiscovery(ctx context.Context, set map[string]*string) error {
	documents := filepath.Join(filepath.Dir(*set["documents-cache"]), "keys", "jwks.json")
	issuer := *set["issuer"]
	mux, health := http.NewServeMux(), http.NewServeMux()
	mux.HandleFunc("GET /workload-identity/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["ES256"]}`, issuer, issuer+"/jwks")
	})
	mux.HandleFunc("GET /workload-identity/jwks", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		http.ServeFile(w, r, documents)
	})
	health.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(documents); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "[+]ping ok\n[-]documents failed: reason withheld\n")
		}
	})
	ended := make(chan error, 2)
	for port, handler := range map[string]http.Handler{*set["port"]: mux, *set["health-port"]: health} {
		go func() { ended <- serve(ctx, port, *set["tls-cert-file"], *set["tls-private-key-file"], handler) }()
	}
	return errors.Join(<-ended, <-ended)
}

// fakeAuthority makes what a cluster makes at its first start: an authority, and a serving certificate of it.
func fakeAuthority(folder string, now time.Time) error {
	made, err := testkit.Certify(x509.Certificate{
		Subject: pkix.Name{CommonName: "fake cluster"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(10 * 365 * 24 * time.Hour), IsCA: true,
	}, nil)
	if err != nil {
		return err
	}
	certificatePEM, keyPEM := made.PEM(), made.KeyPEM()
	authority, err := pki.Load(certificatePEM, keyPEM, now)
	if err != nil {
		return err
	}
	pair, err := authority.Issue(pki.Request{CommonName: "fake", Hosts: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, now, rand.Reader)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"ca.key": keyPEM, "serving.crt": pair.Certificate, "serving.key": pair.Key, "ca.crt": certificatePEM} {
		if err := home.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// listens reports whether a port of 127.0.0.1 accepts connections.
func listens(port string) bool {
	connection, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}
