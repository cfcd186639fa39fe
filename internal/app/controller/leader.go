package controller

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the Lease that the leader holds.
const leaseName = "credence-controller"

// The times of the election are those that Kubernetes' own controllers use. Two leaders at once would do no harm: the key
// store lets one of them save.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// lead runs do while this process is the leader, and returns when it is so no longer.
func lead(ctx context.Context, c checked, client kubernetes.Interface, do func(context.Context) error) error {
	identity := hostname()
	failed := make(chan error, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.LeaseNamespace, Name: leaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		Name:            leaseName,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				c.Log.InfoContext(ctx, "leading: this replica rotates", "identity", identity)
				failed <- do(ctx)
			},
			OnStoppedLeading: func() { c.Log.Info("leading no longer", "identity", identity) },
			OnNewLeader: func(leader string) {
				if leader != identity {
					c.Log.Info("another replica rotates", "leader", leader)
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
	return errors.New("leadership was lost: the Lease " + c.LeaseNamespace + "/" + leaseName + " could not be renewed")
}
