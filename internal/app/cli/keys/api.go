package keys

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// apiRing is the ring of workload identities, behind the API of a cluster.
type apiRing struct {
	*screen.Terminal
	api     *cluster.API
	program string // what a user types to run this program
}

const ringName = v1alpha1.WorkloadIdentities

func (r apiRing) waiting() (stop func()) { return r.WaitingFor("the API server " + r.api.Host) }

func (r apiRing) read(ctx context.Context) (*v1alpha1.KeyRing, error) {
	defer r.waiting()()
	var ring v1alpha1.KeyRing
	if err := r.api.Keys.Get().MaxRetries(0).Resource("keyrings").Name(ringName).Do(ctx).Into(&ring); err != nil {
		return nil, apiFailure(r.program, "read the ring of keys", err)
	}
	ring.TypeMeta = typeOf("KeyRing")
	if len(ring.Status.Keys) == 0 {
		return nil, &command.Failure{
			Line: "error: the KeyRing " + ringName + " has no keys in its status yet",
			Hint: "the key controller writes them: check that credence-server controller runs", Code: command.ExitOutage,
		}
	}
	return &ring, nil
}

func (r apiRing) rotate(ctx context.Context, spec v1alpha1.KeyRotationSpec, dryRun bool) (v1alpha1.KeyRotationStatus, error) {
	defer r.waiting()()
	var answer v1alpha1.KeyRotation
	err := r.api.Keys.Post().MaxRetries(0).Resource("keyrings").Name(ringName).SubResource("rotation").VersionedParams(options(dryRun), metav1.ParameterCodec).
		Body(&v1alpha1.KeyRotation{TypeMeta: typeOf("KeyRotation"), Spec: spec}).Do(ctx).Into(&answer)
	if err != nil {
		return v1alpha1.KeyRotationStatus{}, apiFailure(r.program, "rotate the "+spec.Algorithm+" key", err)
	}
	return answer.Status, nil
}

func (r apiRing) revoke(ctx context.Context, spec v1alpha1.KeyRevocationSpec, dryRun bool) (v1alpha1.KeyRevocationStatus, error) {
	defer r.waiting()()
	var answer v1alpha1.KeyRevocation
	err := r.api.Keys.Post().MaxRetries(0).Resource("keyrings").Name(ringName).SubResource("revocation").VersionedParams(options(dryRun), metav1.ParameterCodec).
		Body(&v1alpha1.KeyRevocation{TypeMeta: typeOf("KeyRevocation"), Spec: spec}).Do(ctx).Into(&answer)
	if err != nil {
		return v1alpha1.KeyRevocationStatus{}, apiFailure(r.program, "revoke key "+spec.Key, err)
	}
	return answer.Status, nil
}

// update replaces the spec of the ring, unless it has changed since it was read.
func (r apiRing) update(ctx context.Context, ring *v1alpha1.KeyRing) error {
	defer r.waiting()()
	return r.api.Keys.Put().MaxRetries(0).Resource("keyrings").Name(ring.Name).Body(ring).Do(ctx).Error()
}

func options(dryRun bool) *metav1.CreateOptions {
	if dryRun {
		return &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	}
	return &metav1.CreateOptions{}
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}
