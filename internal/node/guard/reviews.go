package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// Reviewer has the API review pods that come from it. An error is one of the API, or that it does not answer.
type Reviewer interface {
	Review(ctx context.Context, spec identityv1alpha1.NodeReviewSpec) (identityv1alpha1.NodeReviewStatus, error)
}

// reviewLimit is how long a verdict may take. A kubelet waits for two minutes for a container, and then tries again.
const reviewLimit = 15 * time.Second

// review has a pod of the API reviewed before a container of it is created, unless there is a verdict. Without one, nothing is created.
func (g *Guard) review(ctx context.Context, p pod, container, credentialSpec string) error {
	namespace, name, _ := strings.Cut(p.full, "/")
	key := containerKey(container, credentialSpec)
	if g.Reviews == nil || slices.Contains(g.Unreviewed, namespace) || g.verdicts.has(p.uid, key) {
		return nil
	}
	what := fmt.Sprintf("container %q", container)
	if container == "" {
		what = "its containers"
	}
	limited, cancel := context.WithTimeout(ctx, reviewLimit)
	defer cancel()
	verdict, err := g.Reviews.Review(limited, identityv1alpha1.NodeReviewSpec{Namespace: namespace, Name: name, UID: p.uid, Container: container, CredentialSpec: credentialSpec})
	switch {
	case err != nil:
		g.Log.ErrorContext(ctx, "no verdict on a pod of the API", "pod", p.full, "container", container, "error", err)
		return status.Errorf(codes.Unavailable, "pod %s: credence-node guard creates %s only when the API has reviewed the pod, and it has not: %s", p.full, what, err)
	case !verdict.Allowed:
		g.Log.WarnContext(ctx, "held", "pod", p.full, "container", container, "reason", verdict.Reason)
		return status.Errorf(codes.PermissionDenied, "pod %s: credence-node guard holds %s: %s", p.full, what, verdict.Reason)
	}
	if err := g.verdicts.keep(p.uid, append(slices.Clone(verdict.Containers), key), func() ([]string, error) { return g.pods(ctx) }); err != nil {
		g.Log.ErrorContext(ctx, "the verdict on a pod is in memory alone: after a restart of the guard the API must give it again", "pod", p.full, "error", err)
	}
	return nil
}

// containerKey is a container with the credential spec that a runtime is to give it.
func containerKey(container, credentialSpec string) string {
	if credentialSpec == "" {
		return container
	}
	sum := sha256.Sum256([]byte(credentialSpec))
	return container + " " + hex.EncodeToString(sum[:])
}

// pods are the uids of the pods that have a sandbox.
func (g *Guard) pods(ctx context.Context) ([]string, error) {
	list, err := g.containers.ListPodSandbox(ctx, &runtime.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the runtime: %w", err)
	}
	var uids []string
	for _, sandbox := range list.GetItems() {
		uids = append(uids, sandbox.GetMetadata().GetUid())
	}
	return uids, nil
}
