// Package registration makes the APIServices of Credence once the API server behind them answers, and deletes them when the namespace of
// that server is being deleted: one that is registered and does not answer keeps a cluster from deleting any namespace. In go clients of the
// cluster and of the server; nothing comes out but the objects.
package registration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	authenticationv1alpha1 "github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

const (
	// Service is the name of the Service of the API server, and of its component.
	Service = "credence-apiserver"
	// owner is the ClusterRole that is deleted with the installation. The cluster then deletes the APIServices, whether or not any program
	// of Credence still runs.
	owner = "credence:apiserver"

	whileMissing, whileThere = 2 * time.Second, 10 * time.Second
	beforeNextTry            = time.Second // of withdrawing
	answerTimeout            = 5 * time.Second
)

var (
	apiServices  = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

func groupVersions() []schema.GroupVersion {
	return []schema.GroupVersion{authenticationv1alpha1.SchemeGroupVersion, identityv1alpha1.SchemeGroupVersion}
}

// Registrar makes and deletes the APIServices.
type Registrar struct {
	Objects   dynamic.Interface
	Namespace string // of the Service
	// Bundle returns the authorities (PEM) that the API server's certificate is verified by.
	Bundle func(context.Context) ([]byte, error)
	// Follow has caBundle follow Bundle, where no other program writes it.
	Follow bool
	// Ready returns nil once the API server answers with a certificate of these authorities.
	Ready func(ctx context.Context, bundle []byte) error
	Log   *slog.Logger
}

// Run makes those that are missing until ctx is done, and changes none but for Follow. Call Withdraw afterwards.
func (r *Registrar) Run(ctx context.Context) error {
	last := ""
	for {
		wait, now := whileThere, ""
		if err := r.pass(ctx); err != nil && ctx.Err() == nil {
			if wait, now = whileMissing, err.Error(); now != last {
				r.Log.InfoContext(ctx, "the API is not registered as it should be yet", "reason", err)
			}
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Withdraw deletes the APIServices if the namespace is being deleted: this process then ends for good, as the API server does, and what owns
// them stays. It tries until ctx is done.
func (r *Registrar) Withdraw(ctx context.Context) error {
	for {
		_, err := r.withdrawn(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(beforeNextTry):
		}
	}
}

// withdrawn reports whether the namespace is being deleted. Then the APIServices are, too.
func (r *Registrar) withdrawn(ctx context.Context) (bool, error) {
	namespace, err := r.Objects.Resource(namespaces).Get(ctx, r.Namespace, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", r.Namespace, err)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return false, nil
	}
	for _, version := range groupVersions() {
		name := apiServiceName(version)
		switch err := r.Objects.Resource(apiServices).Delete(ctx, name, metav1.DeleteOptions{}); {
		case err == nil:
			r.Log.InfoContext(ctx, "the API is withdrawn, as its namespace is being deleted", "apiService", name)
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("delete APIService %s: %w", name, err)
		}
	}
	return true, nil
}

func (r *Registrar) pass(ctx context.Context) error {
	if withdrawn, err := r.withdrawn(ctx); err != nil || withdrawn {
		return err
	}
	for _, version := range groupVersions() {
		name := apiServiceName(version)
		found, err := r.Objects.Resource(apiServices).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read APIService %s: %w", name, err)
		}
		there := err == nil
		if there && !r.Follow {
			continue
		}
		bundle, err := r.Bundle(ctx)
		if err != nil {
			return err
		}
		if there && trusts(found, bundle) {
			continue
		}
		if err := r.Ready(ctx, bundle); err != nil {
			return err
		}
		if there {
			if err := r.trust(ctx, found, bundle); err != nil {
				return err
			}
			continue
		}
		role, err := r.Objects.Resource(clusterRoles).Get(ctx, owner, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read ClusterRole %s: %w", owner, err)
		}
		if _, err := r.Objects.Resource(apiServices).Create(ctx, r.apiService(version, bundle, role), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create APIService %s: %w", name, err)
		}
		r.Log.InfoContext(ctx, "the API is registered", "apiService", name)
	}
	return nil
}

// trust replaces caBundle of an APIService, once its server answers with a certificate of the new authorities.
func (r *Registrar) trust(ctx context.Context, service *unstructured.Unstructured, bundle []byte) error {
	if err := unstructured.SetNestedField(service.Object, base64.StdEncoding.EncodeToString(bundle), "spec", "caBundle"); err != nil {
		return fmt.Errorf("change APIService %s: %w", service.GetName(), err)
	}
	if _, err := r.Objects.Resource(apiServices).Update(ctx, service, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write caBundle of APIService %s: %w", service.GetName(), err)
	}
	r.Log.InfoContext(ctx, "caBundle written", "apiService", service.GetName())
	return nil
}

func trusts(service *unstructured.Unstructured, bundle []byte) bool {
	have, _, err := unstructured.NestedString(service.Object, "spec", "caBundle")
	return err == nil && have == base64.StdEncoding.EncodeToString(bundle)
}

func apiServiceName(version schema.GroupVersion) string { return version.Version + "." + version.Group }

func (r *Registrar) apiService(version schema.GroupVersion, bundle []byte, role *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiServices.GroupVersion().String(),
		"kind":       "APIService",
		"metadata": map[string]any{
			"name": apiServiceName(version),
			"ownerReferences": []any{map[string]any{
				"apiVersion": clusterRoles.GroupVersion().String(), "kind": "ClusterRole", "name": owner, "uid": string(role.GetUID()),
			}},
		},
		"spec": map[string]any{
			"group": version.Group, "version": version.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString(bundle),
			"service":  map[string]any{"name": Service, "namespace": r.Namespace, "port": int64(443)},
		},
	}}
}

// Ready returns a check of whether the API server of a namespace is ready, by its Service.
func Ready(namespace string) func(ctx context.Context, bundle []byte) error {
	host := Service + "." + namespace + ".svc"
	return func(ctx context.Context, bundle []byte) error {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle) {
			return errors.New("there is no certificate authority yet")
		}
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/readyz", nil)
		if err != nil {
			return err
		}
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("the API server does not answer: %w", err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the API server is not ready: %s", response.Status)
		}
		return nil
	}
}
