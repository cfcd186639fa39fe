package certificates

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/election"
	"github.com/credence-id/credence/internal/app/serving/eventing"
	"github.com/credence-id/credence/internal/certificates"
	"github.com/credence-id/credence/internal/certificates/keeper"
	"github.com/credence-id/credence/internal/pki"
	"github.com/credence-id/credence/internal/registration"
)

const (
	// requestTimeout bounds each question to the API. Watches have no bound but their own.
	requestTimeout = 10 * time.Second
	// withdrawTimeout bounds how long the end may take. A pod has longer.
	withdrawTimeout = 15 * time.Second
)

// Run keeps certificates and registers the API until ctx is done, and at the end withdraws the API if its namespace is being deleted. An error
// is a configuration that cannot work, or the loss of leadership.
func Run(ctx context.Context, config Config) error {
	c, wanted, err := config.check()
	if err != nil {
		return serving.Usage(err)
	}
	klog.SetLogger(logr.FromSlogHandler(c.Log.Handler())) // what the libraries of Kubernetes log
	cluster, err := serving.Cluster("--kubeconfig", c.Kubeconfig, "certificates")
	if err != nil {
		return err
	}
	api, err := connect(cluster)
	if err != nil {
		return fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	var lead []func(context.Context) error
	if c.CAFile == "" {
		k, err := keep(ctx, group, c, wanted, cluster, api)
		if err != nil {
			return err
		}
		lead = append(lead, k.Lead)
	} else {
		if _, err := authorities(c.CAFile); err != nil {
			return err
		}
		if err := c.Health.Start(ctx, group, func() error { return nil }, serving.NewRegistry(), cluster, c.Log); err != nil {
			return err
		}
	}
	if c.RegisterAPI {
		r := newRegistrar(c, api)
		// Each replica does, whether or not it leads: all of them end.
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
			defer cancel()
			if err := r.Withdraw(ctx); err != nil {
				c.Log.Error("the API may be registered without a server", "reason", err)
			}
		}()
		lead = append(lead, r.Run)
	}
	group.Go(func() error {
		lease := types.NamespacedName{Namespace: c.Namespace, Name: certificates.Own}
		return election.Lead(ctx, api.client.CoordinationV1(), lease, c.Log, func(ctx context.Context) error {
			all, ctx := errgroup.WithContext(ctx)
			for _, each := range lead {
				all.Go(func() error { return each(ctx) })
			}
			return all.Wait()
		})
	})
	c.Log.Info("certificates started", "certificateLifetime", c.Lifetime.String(), "authorityLifetime", c.AuthorityLifetime.String(), "overlap", c.Overlap.String(), "caFile", c.CAFile)
	return serving.Wait(group, c.Log, "certificates stopped")
}

// keep has the group keep the certificates, and show the health of that.
func keep(ctx context.Context, group *errgroup.Group, c Config, wanted []certificates.Wanted, cluster *rest.Config, api clients) (*keeper.Keeper, error) {
	registry := serving.NewRegistry()
	k, err := newKeeper(ctx, c, wanted, api, registry)
	if err != nil {
		return nil, err
	}
	if c.HealthPort != 0 {
		listener, err := serving.Listen(ctx, c.BindAddress, "--health-port", c.HealthPort)
		if err != nil {
			return nil, err
		}
		health := serving.NewHealth(k.Ready, registry, &serving.MetricsReaders{Cluster: cluster, Anonymous: c.AnonymousMetrics})
		server := serving.New("health", listener, health, k, c.Log)
		group.Go(func() error { return server.Run(ctx) })
	}
	group.Go(func() error { return k.Run(ctx) })
	return k, nil
}

// clients call the cluster's API.
type clients struct {
	client  kubernetes.Interface
	objects dynamic.Interface
	changes metadata.Interface // without a bound, for watches
}

func connect(cluster *rest.Config) (c clients, err error) {
	if c.changes, err = metadata.NewForConfig(cluster); err != nil {
		return c, err
	}
	bounded := rest.CopyConfig(cluster)
	bounded.Timeout = requestTimeout
	if c.objects, err = dynamic.NewForConfig(bounded); err != nil {
		return c, err
	}
	c.client, err = kubernetes.NewForConfig(bounded)
	return c, err
}

func newKeeper(ctx context.Context, c Config, wanted []certificates.Wanted, api clients, registry prometheus.Registerer) (*keeper.Keeper, error) {
	return keeper.New(keeper.Needs{
		Namespace: c.Namespace,
		Secrets:   api.client.CoreV1().Secrets(c.Namespace),
		Objects:   api.objects,
		Metadata:  api.changes,
		Events:    eventing.NewRecorder(ctx, api.client, certificates.Own),
		Wanted:    wanted,
		Settings:  certificates.Settings{AuthorityLifetime: c.AuthorityLifetime, Overlap: c.Overlap},
		Now:       time.Now,
		Random:    rand.Reader,
		Recorder:  keeper.NewRecorder(registry),
		Log:       c.Log,
	})
}

func newRegistrar(c Config, api clients) *registration.Registrar {
	bundle := func(ctx context.Context) ([]byte, error) {
		name := certificates.SecretOf(registration.Service)
		secret, err := api.client.CoreV1().Secrets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		}
		return secret.Data[corev1.ServiceAccountRootCAKey], nil
	}
	if c.CAFile != "" {
		bundle = func(context.Context) ([]byte, error) { return authorities(c.CAFile) }
	}
	return &registration.Registrar{
		Objects:   api.objects,
		Namespace: c.Namespace,
		Bundle:    bundle,
		Follow:    c.CAFile != "", // else the keeper writes caBundle
		Ready:     registration.Ready(c.Namespace),
		Log:       c.Log,
	}
}

// authorities returns the certificates of a file, and leaves out any private key: everyone can read a caBundle.
func authorities(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	var bundle []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			bundle = append(bundle, pki.Encode(block.Bytes)...)
		}
	}
	if bundle == nil {
		return nil, fmt.Errorf("--ca-file %s has no certificate: give the authorities that signed the API server's, in PEM", file)
	}
	return bundle, nil
}
