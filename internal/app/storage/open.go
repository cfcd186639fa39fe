package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/storage"
	"github.com/credence-id/credence/internal/apiserver/storage/cluster"
	"github.com/credence-id/credence/internal/apiserver/storage/transfer"
	"github.com/credence-id/credence/internal/app/serving"
)

// patience is how long a storage may take until it answers for the first time.
const patience = 30 * time.Second

// opened are the two storages, and what is closed after the copy, last first.
type opened struct {
	from, to transfer.Store
	closing  []func()
}

func (s *opened) close() {
	for i := len(s.closing) - 1; i >= 0; i-- {
		s.closing[i]()
	}
}

// open opens both storages, the source first. It fails if an API server runs, where that can be known.
func (o *options) open(ctx context.Context, from, to place) (_ *opened, err error) {
	s := &opened{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	var host rest.Interface
	if o.kubeconfig != "" || o.serverPods != "" || from.kind == inCluster || to.kind == inCluster {
		if host, err = o.host(); err != nil {
			return nil, err
		}
		if err := o.awaitEnd(ctx, host); err != nil {
			return nil, err
		}
		if err := checkStopped(ctx, host); err != nil {
			return nil, err
		}
	}
	if s.from, err = o.store(ctx, from, host, s); err != nil {
		return nil, fmt.Errorf("open --from: %w", err)
	}
	if s.to, err = o.store(ctx, to, host, s); err != nil {
		return nil, fmt.Errorf("open --to: %w", err)
	}
	return s, nil
}

func (o *options) store(ctx context.Context, p place, host rest.Interface, s *opened) (transfer.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	servers := p.servers
	switch p.kind {
	case inCluster:
		if err := cluster.Await(ctx, host); err != nil {
			return nil, err
		}
		mac, err := cluster.Keys{Secrets: corev1client.New(host).Secrets(cluster.KeyNamespace)}.Read(ctx)
		return cluster.NewAll(host, mac), err
	case embedded:
		etcd, err := storage.Start(ctx, p.folder, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		if err != nil {
			return nil, err
		}
		s.closing = append(s.closing, etcd.Stop)
		servers = []string{etcd.Endpoint()}
	}
	config := clientv3.Config{Endpoints: servers, Logger: zap.NewNop()}
	if p.kind == inEtcd && (!o.tls.Empty() || o.tls.TrustedCAFile != "") {
		tls, err := o.tls.ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("read --etcd-cafile, --etcd-certfile or --etcd-keyfile: %w", err)
		}
		config.TLS = tls
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	s.closing = append(s.closing, func() { _ = client.Close() })
	if _, err := client.Get(ctx, o.prefix, clientv3.WithKeysOnly()); err != nil {
		return nil, fmt.Errorf("reach the etcd at %v: %w", servers, err)
	}
	return transfer.NewEtcd(client, o.prefix), nil
}

// host returns a client of the cluster.
func (o *options) host() (rest.Interface, error) {
	config, err := serving.Cluster("--kubeconfig", o.kubeconfig, "storage")
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	return client.CoreV1().RESTClient(), nil
}

// awaitEnd returns once no pod of --server-pods is left. One that is ending gets no request anymore, and may still answer, and store, those that it has.
func (o *options) awaitEnd(ctx context.Context, host rest.Interface) error {
	namespace, selector, err := o.pods()
	if err != nil || selector == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var list corev1.PodList
	var last error
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		last = host.Get().Namespace(namespace).Resource("pods").Param("labelSelector", selector).Do(ctx).Into(&list)
		return last == nil && len(list.Items) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil:
		return fmt.Errorf("look for pods of the API server of Credence: %w", last)
	}
	return fmt.Errorf("%d pods of the API server of Credence run, such as %s: stop all of them first", len(list.Items), list.Items[0].Name)
}

// checkStopped returns an error unless the cluster has no API server of Credence that answers: one would change the source, and would not
// notice the target.
func checkStopped(ctx context.Context, host rest.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := host.Get().AbsPath("/apis/" + v1alpha1.SchemeGroupVersion.String()).Do(ctx).Error()
	switch {
	case err == nil:
		return errors.New("an API server of Credence answers in this cluster: stop all of them first, for example by scaling the Deployment credence-apiserver to 0")
	case apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err):
		return nil
	}
	return fmt.Errorf("check that no API server of Credence runs: %w", err)
}
