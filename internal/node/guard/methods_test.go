package guard

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/test/testkit"
)

// Each method of CRI is decided on, or passes for a reason. A version of CRI that adds one fails here, until it is known what the method creates.
func TestEachMethodIsKnown(t *testing.T) {
	g := testkit.Need(New(Config{}, endpoint.Socket(filepath.Join(t.TempDir(), "r"))))(t)
	defer g.runtime.Close()
	known := map[string]bool{}
	for _, service := range []grpc.ServiceDesc{runtime.RuntimeService_ServiceDesc, runtime.ImageService_ServiceDesc} {
		var names []string
		for _, m := range service.Methods {
			names = append(names, m.MethodName)
		}
		for _, s := range service.Streams {
			names = append(names, s.StreamName)
		}
		for _, name := range names {
			method := "/" + service.ServiceName + "/" + name
			known[method] = true
			decided, reason := g.decisions[method] != nil, passing[method]
			if decided == (reason != "") {
				t.Errorf("%s: decided on: %v; passes because %q: want one of both", method, decided, reason)
			}
		}
	}
	for method := range passing {
		if !known[method] {
			t.Errorf("%s passes, and is not a method of CRI", method)
		}
	}
	for method := range g.decisions {
		if !known[method] {
			t.Errorf("%s is decided on, and is not a method of CRI", method)
		}
	}
}
