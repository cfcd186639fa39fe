// Package credentialsdata serves credentialsbindings/data. In goes a request of the agent of a workload cluster, which may name a context object
// that refers to the binding, or of the agent of the identity cluster itself, out comes the data of the Secret to which the binding refers, if the Secret consents. It reads this one Secret with the server's own right, and neither keeps nor
// logs data.
package credentialsdata

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// Annotations of the audit event of data that was given. They have names, and nothing of the data.
const (
	AuditSecret  = "data." + v1alpha1.GroupName + "/secret"
	AuditCluster = "data." + v1alpha1.GroupName + "/cluster"
	AuditContext = "data." + v1alpha1.GroupName + "/context"
)

// ownAgent is the agent of the cluster that has the identities, as deploy/base installs it.
const ownAgent = "system:serviceaccount:credence-system:credence-agent"

// Objects finds the kinds of objects that ContextKinds make contexts: nil for a kind that no ContextKind has. Its errors are API errors.
type Objects interface {
	Kind(apiVersion, kind string) (*contexts.Kind, error)
}

// Bindings reads CredentialsBindings from the storage.
type Bindings interface {
	rest.Getter
	// Accept is 403 unless a binding gives the Secret of a uid.
	Accept(ctx context.Context, binding *v1alpha1.CredentialsBinding, secret types.UID) error
}

// Config is what the endpoint needs; every field is required.
type Config struct {
	Bindings   Bindings
	Clusters   clusters.Users
	Sightings  *clusters.Sightings
	Objects    Objects
	Authorizer authorizer.UnconditionalAuthorizer
	// Secrets reads with the server's own rights, which an admin gives namespace by namespace.
	Secrets corev1client.SecretsGetter
}

// REST serves the subresource credentialsbindings/data.
type REST struct{ Config }

var (
	_ rest.NamedCreater                   = &REST{}
	_ rest.GroupVersionKindProvider       = &REST{}
	_ rest.SubresourceObjectMetaPreserver = &REST{}
)

// NewREST returns the endpoint.
func NewREST(config Config) *REST { return &REST{config} }

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &v1alpha1.CredentialsDataRequest{} }

// Destroy implements rest.Storage.
func (*REST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("CredentialsDataRequest")
}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements rest.SubresourceObjectMetaPreserver: a uid in the request is a
// precondition.
func (*REST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create gives the data, or with dryRun checks alone.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	sent, ok := obj.(*v1alpha1.CredentialsDataRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a CredentialsDataRequest", obj))
	}
	if sent.Name != "" && sent.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name must be empty or the name of the CredentialsBinding in the URL, %q", name))
	}
	answer := sent.DeepCopy()
	answer.Namespace, answer.Name, answer.ManagedFields, answer.Status = request.NamespaceValue(ctx), name, nil, v1alpha1.CredentialsDataRequestStatus{}
	if admit != nil {
		if err := admit(ctx, answer.DeepCopy()); err != nil {
			return nil, err
		}
	}
	cluster, err := r.agentsCluster(ctx, answer)
	if err != nil {
		return nil, err
	}
	secret, err := r.secret(ctx, answer)
	if err != nil {
		return nil, err
	}
	r.Sightings.Saw(cluster, "")
	if options == nil || len(options.DryRun) == 0 {
		audit.AddAuditAnnotation(ctx, AuditSecret, secret.Namespace+"/"+secret.Name+"/"+string(secret.UID))
		if cluster != nil {
			audit.AddAuditAnnotation(ctx, AuditCluster, cluster.Name+"/"+string(cluster.UID))
		}
		if object := answer.Spec.ContextObject; object != nil {
			audit.AddAuditAnnotation(ctx, AuditContext, tokensecret.FormatContext(*object))
		}
		answer.Status.Data = secret.Data
	}
	return answer, nil
}

// agentsCluster returns the workload cluster of the caller, which may have the data: by the context object that the request names, or
// by its list of namespaces. It is nil for the agent of the identity cluster itself, which has what it may use. This comes before the binding is read: without these rights a caller does not learn what exists.
func (r *REST) agentsCluster(ctx context.Context, of *v1alpha1.CredentialsDataRequest) (*clusters.Cluster, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("data is given to authenticated callers only")
	}
	cluster, err := r.Clusters.Of(caller.GetName())
	if err != nil {
		return nil, err
	}
	binding := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
	switch {
	case cluster == nil && caller.GetName() == ownAgent && of.Spec.ContextObject == nil:
		return nil, r.checkUse(ctx, caller, binding)
	case cluster == nil || clusters.OfWebhook(caller.GetName()):
		return nil, refused(of.Name, "data is given to agents alone: no WorkloadCluster lists user %q as one, and that of this cluster is %s, for no context object", caller.GetName(), ownAgent)
	}
	if object := of.Spec.ContextObject; object != nil {
		if local, err := r.checkReference(cluster, binding, object); local || err != nil {
			return cluster, err
		}
	}
	return cluster, r.checkListed(ctx, caller, cluster, binding)
}

// checkListed is 403 unless a cluster lists the namespace of a binding, and its agent may use the binding.
func (r *REST) checkListed(ctx context.Context, caller user.Info, cluster *clusters.Cluster, binding types.NamespacedName) error {
	if !slices.Contains(cluster.Spec.Identities.Namespaces, binding.Namespace) {
		return refused(binding.Name, "spec.identities.namespaces of the WorkloadCluster of user %q does not list the namespace %s", caller.GetName(), binding.Namespace)
	}
	return r.checkUse(ctx, caller, binding)
}

func (r *REST) checkUse(ctx context.Context, caller user.Info, binding types.NamespacedName) error {
	object := authority.Object{Kind: authority.CredentialsBindings, Namespace: binding.Namespace, Name: binding.Name}
	if allowed, err := rights.Granted(ctx, r.Authorizer, caller, "use", object); err != nil {
		return err
	} else if !allowed {
		return refused(binding.Name, "%w", rights.CannotUse("user", caller.GetName(), object))
	}
	return nil
}

// checkReference is an error unless a context object is on a cluster, and refers to a binding. It reports whether that suffices: a binding of its own
// namespace, by an object that has one. Users who write other references need no right to what these name, and an agent may write some itself.
// An agent learns nothing of the objects of other clusters, not even whether they exist.
func (r *REST) checkReference(cluster *clusters.Cluster, binding types.NamespacedName, object *v1alpha1.ContextObject) (local bool, err error) {
	kind, err := r.Objects.Kind(object.APIVersion, object.Kind)
	if err != nil {
		return false, err
	}
	if kind == nil {
		return false, refused(binding.Name, "no ContextKind has objects of apiVersion %q and kind %q", wording.Abbreviate(object.APIVersion), wording.Abbreviate(object.Kind))
	}
	found, err := kind.Find(object.Namespace, object.Name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !found.On(cluster.Name):
		return false, refused(binding.Name, "the context object is not on WorkloadCluster %s, or does not exist", cluster.Name)
	case err != nil:
		return false, err
	case found.UID != object.UID:
		return false, refused(binding.Name, "the context object has another uid than the request names: perhaps it was deleted and created again")
	case !slices.Contains(found.Bindings(), binding):
		return false, refused(binding.Name, "the context object does not refer to the binding")
	}
	local = slices.Contains(found.Local().Bindings(), binding)
	identities := cluster.Spec.Identities
	if local && !identities.FromContexts && !slices.Contains(identities.Namespaces, binding.Namespace) {
		return false, refused(binding.Name, "WorkloadCluster %s may not have data of bindings of the namespace %s: set spec.identities.fromContexts, or add it to spec.identities.namespaces", cluster.Name, binding.Namespace)
	}
	return local, nil
}

// Consents is an error unless the Secret to which a binding refers can be read, and lets its data be copied for it.
func (r *REST) Consents(ctx context.Context, binding types.NamespacedName) error {
	_, err := r.secret(request.WithNamespace(ctx, binding.Namespace), &v1alpha1.CredentialsDataRequest{ObjectMeta: metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.Name}})
	return err
}

// Reaches is an error unless an agent of a cluster may have the data of a binding for a context object.
func (r *REST) Reaches(ctx context.Context, cluster *clusters.Cluster, binding types.NamespacedName, object *v1alpha1.ContextObject) error {
	if local, err := r.checkReference(cluster, binding, object); local || err != nil {
		return err
	}
	err := refused(binding.Name, "WorkloadCluster %s lists no agent", cluster.Name)
	for _, name := range cluster.Spec.Users {
		if clusters.OfWebhook(name) {
			continue
		}
		var agent user.Info = &user.DefaultInfo{Name: name}
		if namespace, account, notAccount := serviceaccount.SplitUsername(name); notAccount == nil {
			agent = serviceaccount.UserInfo(namespace, account, "")
		}
		if err = r.checkListed(ctx, agent, cluster, binding); err == nil {
			return nil
		}
	}
	return err
}

// secret returns the Secret to which the binding of a request refers now, by the storage, and which consents.
func (r *REST) secret(ctx context.Context, of *v1alpha1.CredentialsDataRequest) (*corev1.Secret, error) {
	obj, err := r.Bindings.Get(ctx, of.Name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	binding, ok := obj.(*v1alpha1.CredentialsBinding)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("a %T is not a CredentialsBinding", obj))
	}
	if err := newer.Check(binding); err != nil {
		return nil, err
	}
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(v1alpha1.Resource("credentialsbindings"), of.Name, fmt.Errorf(format, args...))
	}
	ref := binding.SecretRef
	switch {
	case of.UID != "" && of.UID != binding.UID:
		return nil, conflict("the request is for another uid than %s: perhaps the binding was deleted and created again", binding.UID)
	case ref == nil:
		return nil, conflict("it refers to no Secret")
	}
	secret, err := r.Secrets.Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, refused(of.Name, "the API server may not read Secret %s of the namespace %s: a cluster admin lets it, with: kubectl create rolebinding credence-credentials -n %s --clusterrole=credence:apiserver:credentials --serviceaccount=credence-system:credence-apiserver",
			ref.Name, ref.Namespace, ref.Namespace)
	case err != nil && !apierrors.IsNotFound(err):
		return nil, unavailable.New("Secret %s of the namespace %s can't be read now", ref.Name, ref.Namespace)
	case err != nil || !consents(secret, binding.Namespace): // which of the two, is for users who may get the Secret
		return nil, refused(of.Name, "Secret %s of the namespace %s does not exist, or does not consent to bindings of the namespace %s: a user who may get it lets its data be copied, with: kubectl label secret %s -n %s %s=%s, and kubectl annotate secret %s -n %s %s=%s",
			ref.Name, ref.Namespace, binding.Namespace, ref.Name, ref.Namespace, v1alpha1.LabelCopied, v1alpha1.CopiedEnabled, ref.Name, ref.Namespace, v1alpha1.AnnotationCopiedFor, binding.Namespace)
	}
	for _, key := range []string{v1alpha1.SecretToken, v1alpha1.SecretConfig} {
		if _, taken := secret.Data[key]; taken {
			return nil, conflict("Secret %s of the namespace %s has the key %s, which Secrets with tokens keep for themselves", ref.Name, ref.Namespace, key)
		}
	}
	return secret, r.Bindings.Accept(ctx, binding, secret.UID)
}

func refused(binding, format string, args ...any) error {
	return apierrors.NewForbidden(v1alpha1.Resource("credentialsbindings"), binding, fmt.Errorf(format, args...))
}
