package profiles

import (
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// scheme has the types of the objects that controllers read or write.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = corev1.AddToScheme(s) // they only add types
	_ = rbacv1.AddToScheme(s)
	_ = accounts.AddToScheme(s)
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}

// namespaced and clusterScoped are the kinds that controllers read or write.
var (
	namespaced = []schema.GroupVersionKind{
		accounts.SchemeGroupVersion.WithKind("ServiceAccountProfile"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	}
	clusterScoped = []schema.GroupVersionKind{accounts.SchemeGroupVersion.WithKind("SecurityContextTemplate"), accounts.SchemeGroupVersion.WithKind("NamespaceTemplate"), corev1.SchemeGroupVersion.WithKind("Namespace")}
)

// mapper knows the few resources that are used, so that starting needs no answer of the API.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range namespaced {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range clusterScoped {
		m.Add(kind, meta.RESTScopeRoot)
	}
	return m, nil
}
