//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const poll = 50 * time.Millisecond

func dial(socket string) (*grpc.ClientConn, error) {
	// Only root can open the socket: there is nothing to encrypt.
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return connection, nil
}

// Await returns once the runtime answers on a socket, or the cause of ctx's end.
func Await(ctx context.Context, socket string) error {
	connection, err := dial(socket)
	if err != nil {
		return err
	}
	defer connection.Close()
	connection.Connect()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if _, err = cri.NewRuntimeServiceClient(connection).Version(ctx, &cri.VersionRequest{}); err == nil {
			return nil
		}
		connection.ResetConnectBackoff()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("containerd does not answer: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

// HasImage reports whether the runtime has an image of that whole name.
func HasImage(ctx context.Context, folder, fullName string) (bool, error) {
	connection, err := dial(Socket(folder))
	if err != nil {
		return false, err
	}
	defer connection.Close()
	answer, err := cri.NewImageServiceClient(connection).ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: fullName}})
	if err != nil {
		return false, fmt.Errorf("look up image %s in containerd: %w", fullName, err)
	}
	return answer.GetImage() != nil, nil
}

// EndPods ends every pod: containers are signaled first, and killed after grace (whole seconds). Nothing runs afterwards; what
// the runtime knows of pods stays, so that their logs can still be read after the next start.
func EndPods(ctx context.Context, folder string, grace time.Duration) error {
	connection, err := dial(Socket(folder))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := cri.NewRuntimeServiceClient(connection)
	containers, err := client.ListContainers(ctx, &cri.ListContainersRequest{
		Filter: &cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}},
	})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	sandboxes, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{
		Filter: &cri.PodSandboxFilter{State: &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY}},
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var stopping []func() error
	for _, c := range containers.GetContainers() {
		stopping = append(stopping, func() error {
			_, err := client.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: c.GetId(), Timeout: int64(grace.Seconds())})
			return err
		})
	}
	var ending []func() error
	for _, s := range sandboxes.GetItems() {
		ending = append(ending, func() error {
			_, err := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: s.GetId()})
			return err
		})
	}
	if err := errors.Join(together(stopping), together(ending)); err != nil {
		return fmt.Errorf("end pods: %w", err)
	}
	return nil
}

func together(all []func() error) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, each := range all {
		group.Go(func() { errs[i] = each() })
	}
	group.Wait()
	return errors.Join(errs...)
}
