package clientgo

import (
	"errors"

	"k8s.io/client-go/tools/metrics"

	"github.com/credence-id/credence/execcredential"
)

// CountRun is for Options.OnRun of a pool: it counts runs where client-go counts those of its own plugin, in
// rest_client_exec_plugin_call_total with the same labels.
func CountRun(run execcredential.Run) {
	var exit *execcredential.ExitError
	var missing *execcredential.NotFoundError
	var start *execcredential.StartError
	var output *execcredential.OutputError
	switch {
	case run.Err == nil, errors.As(run.Err, &output):
		metrics.ExecPluginCalls.Increment(0, "no_error")
	case errors.As(run.Err, &exit):
		metrics.ExecPluginCalls.Increment(exit.Code, "plugin_execution_error")
	case errors.As(run.Err, &missing), errors.As(run.Err, &start):
		metrics.ExecPluginCalls.Increment(1, "plugin_not_found_error")
	default:
		metrics.ExecPluginCalls.Increment(1, "client_internal_error")
	}
}
