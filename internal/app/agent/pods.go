package agent

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/selftokens"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/source"
)

// podsTimeout bounds a request of a pod, which takes three of the workload cluster and two of the identity cluster.
const podsTimeout = 30 * time.Second

// servePods has the group serve tokens to pods. Every replica does, as nothing is written.
func servePods(ctx context.Context, group *errgroup.Group, config Config, c clusters, p *parts, recorder *selftokens.Recorder) error {
	pair, err := source.NewKeyPair(config.TLSCertFile, config.TLSPrivateKeyFile, (*discovery.Recorder)(nil), config.Log)
	if err != nil {
		return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	listener, err := serving.Listen(ctx, config.BindAddress, "--pods-port", config.PodsPort)
	if err != nil {
		return err
	}
	handler := selftokens.New(selftokens.Config{
		Reviews: c.workloadClient.AuthenticationV1().TokenReviews(), Pods: c.workloadClient.CoreV1(), Rights: authority.Cluster(c.workloadClient.AuthorizationV1().SubjectAccessReviews()),
		Identities: p.identities, Tokens: p.tokens, NamesAccounts: c.namesAccounts(config), Namespaces: config.Namespaces, Clock: clock.RealClock{}, Recorder: recorder, Log: config.Log,
	})
	group.Go(func() error {
		return serving.New("pods", listener, handler, pair, config.Log).Patient(podsTimeout).Run(ctx)
	})
	group.Go(func() error { return pair.Run(ctx) })
	return nil
}
