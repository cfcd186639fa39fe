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

// ringAt is the place of the ring, or of one of its subresources.
func ringAt(within string) cluster.Place {
	return cluster.Place{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Resource: "keyrings", Name: ringName, Within: within}
}

func (r apiRing) waiting() (stop func()) { return r.WaitingFor("the API server " + r.api.Host) }

func (r apiRing) read(ctx context.Context) (*v1alpha1.KeyRing, error) {
	defer r.waiting()()
	var ring v1alpha1.KeyRing
	if err := r.api.Get(ctx, &ring, ringAt("")); err != nil {
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
	var answer v1alpha1.KeyRotation
	err := r.create(ctx, "rotate the "+spec.Algorithm+" key", "rotation", dryRun, v1alpha1.KeyRotation{TypeMeta: typeOf("KeyRotation"), Spec: spec}, &answer)
	return answer.Status, err
}

func (r apiRing) revoke(ctx context.Context, spec v1alpha1.KeyRevocationSpec, dryRun bool) (v1alpha1.KeyRevocationStatus, error) {
	var answer v1alpha1.KeyRevocation
	err := r.create(ctx, "revoke key "+spec.Key, "revocation", dryRun, v1alpha1.KeyRevocation{TypeMeta: typeOf("KeyRevocation"), Spec: spec}, &answer)
	return answer.Status, err
}

func (r apiRing) initialize(ctx context.Context, spec v1alpha1.KeyInitializationSpec, dryRun bool) (v1alpha1.KeyInitializationStatus, error) {
	var answer v1alpha1.KeyInitialization
	err := r.create(ctx, "initialize the keys", "initialization", dryRun, v1alpha1.KeyInitialization{TypeMeta: typeOf("KeyInitialization"), Spec: spec}, &answer)
	return answer.Status, err
}

// create posts an object to a subresource of the ring. doing words the operation for failures.
func (r apiRing) create(ctx context.Context, doing, subresource string, dryRun bool, object, answer any) error {
	defer r.waiting()()
	var options []cluster.Option
	if dryRun {
		options = append(options, cluster.DryRun)
	}
	if err := r.api.Create(ctx, ringAt(subresource), object, answer, options...); err != nil {
		return apiFailure(r.program, doing, err)
	}
	return nil
}

// update replaces the spec of the ring, unless it has changed since it was read.
func (r apiRing) update(ctx context.Context, ring *v1alpha1.KeyRing) error {
	defer r.waiting()()
	return r.api.Update(ctx, ringAt(""), ring, nil)
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}
