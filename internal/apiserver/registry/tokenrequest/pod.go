package tokenrequest

import (
	"context"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/boundtoken"
	"github.com/credence-id/credence/internal/issuer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// podCaller is a service account that authenticated with a token bound to a pod.
type podCaller struct{ boundtoken.Caller }

// caller returns the account and the pod of the caller's token, as kube-apiserver has verified it. Other callers are refused (403), users of
// workload clusters among them: their pods are not known here.
func (r *SelfREST) caller(ctx context.Context, tr *v1alpha1.TokenRequest) (podCaller, error) {
	info, ok := request.UserFrom(ctx)
	if !ok {
		return podCaller{}, apierrors.NewUnauthorized("tokens are issued to authenticated callers only")
	}
	if cluster, err := r.Clusters.Of(info.GetName()); err != nil {
		return podCaller{}, err
	} else if cluster != nil || clusters.Joined(info) {
		return podCaller{}, refusedSelf(tr.Name, "user %q is of a WorkloadCluster, whose pods are not known here: its agent creates workloadidentities/token", info.GetName())
	}
	caller, refusal := boundtoken.Read(info.GetName(), types.UID(info.GetUID()), info.GetExtra())
	if refusal != "" {
		return podCaller{}, refusedSelf(tr.Name, "%s", refusal)
	}
	return podCaller{caller}, nil
}

// user is the account's user name. A deleted account of this name has the same rights, and is refused when the account is read.
func (c podCaller) user() user.Info {
	subject := c.Subject()
	return &user.DefaultInfo{Name: subject.Name, UID: subject.UID, Groups: subject.Groups}
}

// claim is the pod as a token names it.
func (c podCaller) claim() *issuer.Pod {
	return &issuer.Pod{Name: c.Pod.Name, UID: c.Pod.UID, Node: issuer.Node{Name: c.Node.Name, UID: c.Node.UID}}
}
