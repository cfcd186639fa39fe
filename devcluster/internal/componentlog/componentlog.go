// Package componentlog decides what a Kubernetes component of the cluster logs.
//
// In goes the logging configuration made of the component's own flags; its log
// then goes to stderr. Without --v only the warnings and errors do that need
// a reader, and none while it is being stopped. It never changes
// what is logged at --v=1 and above.
package componentlog

import (
	"context"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc/grpclog"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/credence-id/credence/devcluster/internal/quiet"
)

// Apply sets the logging of this process, once. ctx ends when the component is
// stopped.
func Apply(ctx context.Context, config *logs.Options, gates featuregate.FeatureGate) error {
	var stderr io.Writer = os.Stderr
	if config.Verbosity == 0 {
		stderr = logFilter{to: quiet.Writer{To: os.Stderr, Routine: routine()}, stopping: ctx.Done()}
		// The server makes and drops connections to etcd as it starts; gRPC warns of each.
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
	}
	streams := &logsapi.LoggingOptions{ErrorStream: stderr, InfoStream: stderr}
	if err := logsapi.ValidateAndApplyWithOptions(config, streams, gates); err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}
	return nil
}

// logFilter drops informational entries, and all when the component is being
// stopped: it then reports the end of each of its connections as an error. An
// entry arrives in one Write, its severity as the first letter (the klog text format).
type logFilter struct {
	to       io.Writer
	stopping <-chan struct{}
}

func (w logFilter) Write(entry []byte) (int, error) {
	select {
	case <-w.stopping:
		return len(entry), nil
	default:
	}
	if len(entry) > 0 && entry[0] == 'I' {
		return len(entry), nil
	}
	return w.to.Write(entry)
}

// routine is in the warnings and errors of every good start.
func routine() []string {
	return []string{
		"because it has no resources",                 // one for each API version that is off by default
		"The manifest file is empty, ignoring",        // a file for metrics that is optional
		"Flexvolume plugin directory",                 // ours, empty; made the first time
		"removed previous endpoints on kubernetes",    // it has no endpoints: a loopback address may not be in them
		`namespaces \"kube-system\" not found`,        // the server itself makes it a moment later
		"default/kubernetes is not allocated; repair", // the first time: it is then
	}
}
