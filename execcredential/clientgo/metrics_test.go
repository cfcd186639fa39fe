package clientgo_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/client-go/tools/metrics"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
)

type calls []string

func (c *calls) Increment(code int, status string) { *c = append(*c, fmt.Sprint(code, " ", status)) }

func TestRunsAreCounted(t *testing.T) {
	var seen calls
	before := metrics.ExecPluginCalls
	metrics.ExecPluginCalls = &seen
	defer func() { metrics.ExecPluginCalls = before }()
	for want, err := range map[string]error{
		"0 no_error":               nil,
		"7 plugin_execution_error": &execcredential.ExitError{Code: 7},
		"1 plugin_not_found_error": &execcredential.NotFoundError{Err: errors.New("none")},
		"1 client_internal_error":  &execcredential.TimeoutError{},
	} {
		seen = nil
		new(clientgo.Metrics).Run(execcredential.Run{Err: err})
		if len(seen) != 1 || seen[0] != want {
			t.Errorf("%v is counted as %v, want %s", err, seen, want)
		}
	}
}
