package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/apiserver/storage"
	"github.com/credence-id/credence/internal/apiserver/storage/cluster"
	"github.com/credence-id/credence/internal/apiserver/usernames"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/tracing"
)

// startupTimeout bounds the server's requests to its cluster before it serves.
const startupTimeout = 30 * time.Second

// Run serves until ctx ends or a part that it cannot do without fails.
func Run(ctx context.Context, o *Options, scheme *runtime.Scheme, codecs serializer.CodecFactory, log *slog.Logger) error {
	c, err := o.check()
	if err != nil {
		return serving.Usage(err)
	}
	traces, err := tracing.New(ctx, o.TracingConfig, "credence-apiserver")
	if err != nil {
		return serving.Usage(err)
	}
	config, err := clusterOf(o.Recommended.CoreAPI.CoreAPIKubeconfigPath, traces.Trace)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	names, err := usernames.New(objects, log)
	if err != nil {
		return err
	}
	source, err := openKeys(ctx, o, c, client, log)
	if err != nil {
		return err
	}
	stopped := ctx.Err
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.EtcdDataDir != "" {
		etcd, err := storage.Start(ctx, o.EtcdDataDir, log)
		if err != nil {
			return err
		}
		defer etcd.Stop()
		o.Recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}
		go func() {
			select {
			case err := <-etcd.Failed():
				cancel(fmt.Errorf("embedded etcd ended: %w", err))
			case <-ctx.Done():
			}
		}()
	}
	var stored rest.Interface
	var mac *cluster.MAC
	if o.Storage == inCluster {
		if stored, err = recordsOf(ctx, o, traces); err != nil {
			return err
		}
		keys := cluster.Keys{Secrets: client.CoreV1().Secrets(cluster.KeyNamespace), Records: stored}
		if mac, err = keys.Open(ctx, o.SignRecords); err != nil {
			return err
		}
		go keys.Follow(ctx, mac, o.KeysInterval)
	}
	a := assembly{o: o, fail: cancel, stored: stored, mac: mac, checked: c, client: client, objects: objects, usernames: names, keySource: source, traces: traces, scheme: scheme, codecs: codecs, log: log}
	server, err := a.assemble(ctx)
	if err != nil {
		return err
	}
	if err := server.Run(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if stopped() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// recordsOf returns a client for what is stored in the cluster, once the cluster serves it. Compression would cost the cluster more than
// it saves.
func recordsOf(ctx context.Context, o *Options, traces *tracing.Provider) (rest.Interface, error) {
	config, err := clusterOf(o.Recommended.CoreAPI.CoreAPIKubeconfigPath, func(config *rest.Config) {
		config.DisableCompression = true
		traces.Trace(config)
	})
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	records := client.CoreV1().RESTClient()
	return records, cluster.Await(ctx, records)
}

// clusterOf returns how the Kubernetes API is reached, without a limit of our own: it would be shared by all callers. Their requests
// are limited where they come in.
func clusterOf(kubeconfig string, change func(*rest.Config)) (*rest.Config, error) {
	config, err := serving.Cluster("--kubeconfig", kubeconfig, "apiserver")
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	change(config)
	return config, nil
}
