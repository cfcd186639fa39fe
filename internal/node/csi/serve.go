package csi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/credence-id/credence/internal/version"
)

const (
	// largestCall is larger than any volume's attributes and tokens.
	largestCall = 1 << 20
	// stopLimit is for calls in flight.
	stopLimit = 10 * time.Second
)

// Serve answers on a socket in the kubelet's folder of plugins until ctx is done, and then what is in flight. The kubelet finds the socket,
// learns from it which plugin that is, and registers it; so does a kubelet that has restarted. The listener is closed.
func (d *Driver) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(largestCall))
	spec.RegisterIdentityServer(server, d)
	spec.RegisterNodeServer(server, d)
	refused := make(chan error, 1)
	registration.RegisterRegistrationServer(server, &registrar{driver: d, endpoint: listener.Addr().String(), refused: refused})
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	var cause error
	select {
	case err := <-stopped:
		return fmt.Errorf("serve CSI on %s: %w", listener.Addr(), err)
	case cause = <-refused:
	case <-ctx.Done():
	}
	deadline := time.AfterFunc(stopLimit, server.Stop)
	defer deadline.Stop()
	server.GracefulStop()
	// It has not begun to serve if it is stopped at once.
	if err := <-stopped; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("stop serving CSI on %s: %w", listener.Addr(), err)
	}
	return cause
}

// registrar is how the kubelet knows the driver.
type registrar struct {
	registration.UnimplementedRegistrationServer
	driver   *Driver
	endpoint string
	refused  chan<- error
}

// GetInfo implements the kubelet's registration of plugins.
func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: Name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus implements the kubelet's registration of plugins. A kubelet that has refused a plugin tries again with a new
// socket alone, and so with a new process.
func (r *registrar) NotifyRegistrationStatus(ctx context.Context, state *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if state.GetPluginRegistered() {
		r.driver.registered.Store(true)
		r.driver.Log.InfoContext(ctx, "registered with the kubelet")
		return &registration.RegistrationStatusResponse{}, nil
	}
	select {
	case r.refused <- fmt.Errorf("the kubelet does not register the driver: %s", state.GetError()):
	default:
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// GetPluginInfo implements the service Identity.
func (*Driver) GetPluginInfo(context.Context, *spec.GetPluginInfoRequest) (*spec.GetPluginInfoResponse, error) {
	return &spec.GetPluginInfoResponse{Name: Name, VendorVersion: version.Read().Version}, nil
}

// GetPluginCapabilities implements the service Identity: there is no controller, as volumes are of one pod.
func (*Driver) GetPluginCapabilities(context.Context, *spec.GetPluginCapabilitiesRequest) (*spec.GetPluginCapabilitiesResponse, error) {
	return &spec.GetPluginCapabilitiesResponse{}, nil
}

// Probe implements the service Identity.
func (*Driver) Probe(context.Context, *spec.ProbeRequest) (*spec.ProbeResponse, error) {
	return &spec.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// NodeGetInfo implements the service Node.
func (d *Driver) NodeGetInfo(context.Context, *spec.NodeGetInfoRequest) (*spec.NodeGetInfoResponse, error) {
	return &spec.NodeGetInfoResponse{NodeId: d.Node}, nil
}

// NodeGetCapabilities implements the service Node: the driver gives files the group of a pod.
func (*Driver) NodeGetCapabilities(context.Context, *spec.NodeGetCapabilitiesRequest) (*spec.NodeGetCapabilitiesResponse, error) {
	return &spec.NodeGetCapabilitiesResponse{Capabilities: []*spec.NodeServiceCapability{{
		Type: &spec.NodeServiceCapability_Rpc{Rpc: &spec.NodeServiceCapability_RPC{Type: spec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP}},
	}}}, nil
}
