// Package election has one of several replicas work, by a Lease. It is apart from serving, as it brings all clients of Kubernetes into a program.
package election

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The times of the election are those that Kubernetes' own controllers use. Two leaders at once must do no harm.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Lead runs do while this process holds a Lease, and returns when it does so no longer.
func Lead(ctx context.Context, client coordinationv1client.CoordinationV1Interface, lease types.NamespacedName, log *slog.Logger, do func(context.Context) error) error {
	identity := processName()
	failed := make(chan error, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		Name:            lease.Name,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				log.InfoContext(ctx, "leading", "lease", lease.Name, "identity", identity)
				failed <- do(ctx)
			},
			OnStoppedLeading: func() { log.Info("leading no longer", "lease", lease.Name, "identity", identity) },
			OnNewLeader: func(leader string) {
				if leader != identity {
					log.Info("another replica leads", "lease", lease.Name, "leader", leader)
				}
			},
		},
	})
	if ctx.Err() != nil {
		return nil
	}
	select {
	case err := <-failed:
		if err != nil {
			return err
		}
	default:
	}
	return fmt.Errorf("leadership was lost: the Lease %s could not be renewed", lease)
}

// processName names this process among those that would lead.
func processName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return name + "_" + strconv.Itoa(os.Getpid()) + "_" + strconv.FormatUint(rand.Uint64(), 36)
}
