package guard

import (
	"context"

	"k8s.io/apimachinery/pkg/util/version"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// marked adds the guard to the version that the runtime answers: the kubelet writes it into the status of its Node, so that people and doctor see
// which nodes have one. A version that kubelets read by its numbers alone is cut to them; one that they can't read stays.
func marked(_ context.Context, answer *runtime.VersionResponse) (changed bool, err error) {
	read, err := version.ParseSemantic(answer.GetRuntimeVersion())
	if err != nil {
		if read, err = version.ParseGeneric(answer.GetRuntimeVersion()); err != nil {
			return false, nil
		}
	}
	build := v1alpha1.RuntimeGuard
	if others := read.BuildMetadata(); others != "" {
		build = others + "." + build
	}
	answer.RuntimeVersion = read.WithBuildMetadata(build).String()
	return true, nil
}
