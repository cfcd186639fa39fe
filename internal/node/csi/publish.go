package csi

import (
	"context"
	"errors"
	"io/fs"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/credence-id/credence/internal/node/volumes"
	"github.com/credence-id/credence/internal/target"
)

// NodePublishVolume implements the service Node. The kubelet calls it for a pod that starts, and about every minute while it runs, each time
// with a token of the pod.
func (d *Driver) NodePublishVolume(ctx context.Context, call *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	request, err := read(call, d.Audience)
	if err != nil {
		d.Recorder.failed(err)
		return nil, err
	}
	v := d.take(request.path, request.uid)
	defer v.mu.Unlock()
	if request.podToken.Reveal() != v.podToken.Reveal() {
		v.retryAt = time.Time{} // it may have been refused for the last one
	}
	v.request = request
	if err := d.find(v); err != nil {
		if v.token == nil {
			d.forget(request.path, v)
		}
		d.Recorder.failed(unwritten(err))
		return nil, unwritten(err)
	}
	runs := v.mounted
	if !runs && d.volumesOf(request.uid) > mostOfPod {
		d.forget(request.path, v)
		err := tooMany(request)
		d.Recorder.failed(err)
		return nil, err
	}
	err = d.keep(ctx, v, true)
	switch {
	case err == nil:
		return &spec.NodePublishVolumeResponse{}, nil
	case runs:
		// Kubelets take the folder of a volume away after all codes that end a call for good: the pod would not see a new one.
		return nil, status.Error(codes.Unavailable, v.stale(err))
	default:
		d.forget(request.path, v)
		return nil, err
	}
}

// find looks at what is mounted for a volume. After a restart of the driver, that is all that is known of it.
func (d *Driver) find(v *volume) error {
	mounted, err := d.Memory.Mounted(v.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if v.mounted = mounted; !mounted {
		v.token = nil
		v.expires.Store(nil)
		return nil
	}
	if v.token != nil {
		return nil
	}
	text, err := volumes.Read(v.path, target.TokenFile)
	if err != nil {
		return nil // the driver was killed before it wrote
	}
	if token, err := inspect(text); err == nil {
		v.hold(token, d.Window)
		if v.registries != "" {
			v.renewAt = token.IssuedAt // when the passwords end is not known any more
		}
	}
	return nil
}

// stale is the message about a pod that runs.
func (v *volume) stale(err error) string {
	if v.token == nil {
		return "the volume has no token: " + status.Convert(err).Message()
	}
	return "the token is not renewed, and is valid until " + v.token.Expiry.UTC().Format(time.RFC3339) + ": " + status.Convert(err).Message()
}

// NodeUnpublishVolume implements the service Node: it leaves nothing of a volume.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, call *spec.NodeUnpublishVolumeRequest) (*spec.NodeUnpublishVolumeResponse, error) {
	if call.GetVolumeId() == "" {
		return nil, invalid("the call has no volume id")
	}
	if err := checkPath(call.GetTargetPath()); err != nil {
		return nil, err
	}
	v := d.take(call.GetTargetPath(), "")
	defer v.mu.Unlock()
	if err := volumes.Remove(d.Memory, call.GetTargetPath()); err != nil {
		return nil, unwritten(err)
	}
	d.forget(call.GetTargetPath(), v)
	if v.token != nil {
		d.Log.InfoContext(ctx, "volume removed", "identity", v.identity.String(), "pod", v.pod.String())
	}
	return &spec.NodeUnpublishVolumeResponse{}, nil
}
