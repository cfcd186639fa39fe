package nodereview

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// What Kubernetes calls the user of a kubelet.
const (
	kubeletPrefix = "system:node:"
	kubeletGroup  = "system:nodes"
)

// nodeOf is the node of the caller: of a kubelet its own, of a service account that which its token names. Any other caller is refused (403), and so is
// one that names two nodes.
func nodeOf(ctx context.Context) (string, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return "", apierrors.NewUnauthorized("pods are reviewed for authenticated callers only")
	}
	var nodes []string
	if name, of := strings.CutPrefix(caller.GetName(), kubeletPrefix); of && slices.Contains(caller.GetGroups(), kubeletGroup) {
		nodes = append(nodes, name)
	}
	nodes = append(nodes, caller.GetExtra()[serviceaccount.NodeNameKey]...)
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); len(nodes) != 1 || nodes[0] == "" {
		return "", refused("user %q is not of one node: the guard of a node reviews its pods, as the kubelet's user, or by a token with %s", caller.GetName(), serviceaccount.NodeNameKey)
	}
	return nodes[0], nil
}
