package tokenrequest

import (
	"context"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/issuer"
	"k8s.io/apiserver/pkg/audit"
)

// Annotations of the audit event of a token that was issued. They identify the token and hold nothing of it.
const (
	AuditJTI     = "token." + v1alpha1.GroupName + "/jti"
	AuditKeyID   = "token." + v1alpha1.GroupName + "/kid"
	AuditSubject = "token." + v1alpha1.GroupName + "/sub"
	AuditContext = "token." + v1alpha1.GroupName + "/context"
	AuditCluster = "token." + v1alpha1.GroupName + "/cluster"
	AuditPod     = "token." + v1alpha1.GroupName + "/pod"
	AuditNode    = "token." + v1alpha1.GroupName + "/node"
)

func annotate(ctx context.Context, prepared *issuer.Prepared, cluster *issuer.Cluster, object *v1alpha1.ContextObject, tokenContext *issuer.Context) {
	audit.AddAuditAnnotations(ctx,
		AuditJTI, prepared.JTI(),
		AuditKeyID, string(prepared.KeyID()),
		AuditSubject, string(prepared.Subject()),
	)
	if cluster != nil {
		audit.AddAuditAnnotation(ctx, AuditCluster, cluster.Name+"/"+cluster.UID)
	}
	if object != nil {
		audit.AddAuditAnnotation(ctx, AuditContext, object.APIVersion+"/"+object.Kind+"/"+object.Namespace+"/"+object.Name+"/"+string(object.UID))
	}
	if tokenContext != nil && tokenContext.Pod != nil {
		pod := tokenContext.Pod
		audit.AddAuditAnnotations(ctx, AuditPod, tokenContext.ServiceAccount.Namespace+"/"+pod.Name+"/"+pod.UID, AuditNode, pod.Node.Name+"/"+pod.Node.UID)
	}
}
