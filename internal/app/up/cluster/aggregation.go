package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names under which the aggregated API server is known to the cluster.
const (
	Namespace   = "credence-system"
	ServiceName = "credence-apiserver"
	group       = "authentication.gardener.cloud"
	version     = "v1alpha1"
)

const (
	apiServiceName  = version + "." + group
	touchAnnotation = "up.credence.dev/registered-at"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Registration says where the aggregated API server listens, and whose certificate it shows.
type Registration struct {
	Port int
	// CA is the PEM of the authority of its serving certificate.
	CA []byte
}

// Register makes the cluster send requests for authentication.gardener.cloud/v1alpha1 to localhost. at is written to the
// APIService: a change makes the cluster look at once whether the server is there, rather than after a back-off.
func (c *Client) Register(ctx context.Context, registration Registration, at time.Time) error {
	return c.Apply(ctx, []*unstructured.Unstructured{service(registration), apiService(registration, at)})
}

func service(registration Registration) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Service",
		"metadata":   map[string]any{"name": ServiceName, "namespace": Namespace},
		"spec": map[string]any{
			"type":         "ExternalName",
			"externalName": "localhost",
			"ports": []any{map[string]any{
				"name": "https", "protocol": "TCP", "port": int64(registration.Port),
			}},
		},
	}}
}

func apiService(registration Registration, at time.Time) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata": map[string]any{
			"name":        apiServiceName,
			"annotations": map[string]any{touchAnnotation: at.UTC().Format(time.RFC3339Nano)},
		},
		"spec": map[string]any{
			"group":                group,
			"version":              version,
			"groupPriorityMinimum": int64(1000),
			"versionPriority":      int64(15),
			"caBundle":             base64.StdEncoding.EncodeToString(registration.CA),
			"service": map[string]any{
				"name": ServiceName, "namespace": Namespace, "port": int64(registration.Port),
			},
		},
	}}
}

// Available returns nil if the cluster reaches the aggregated API server, else why it does not.
func (c *Client) Available(ctx context.Context) error {
	object, err := c.objects.Resource(apiServices).Get(ctx, apiServiceName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get APIService %s: %w", apiServiceName, err)
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read APIService %s: %w", apiServiceName, err)
	}
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("APIService %s is not available: %v: %v", apiServiceName, condition["reason"], condition["message"])
	}
	return fmt.Errorf("APIService %s has not been looked at yet", apiServiceName)
}

// WaitAvailable waits until the cluster reaches the aggregated API server and tells clients of its resources.
func (c *Client) WaitAvailable(ctx context.Context) error {
	return repeat(ctx, always, func() error {
		if err := c.Available(ctx); err != nil {
			return err
		}
		return c.announced(ctx)
	})
}

// announced says whether kubectl finds the resources: the cluster's own list of them trails the APIService's condition.
func (c *Client) announced(ctx context.Context) error {
	body, err := c.plain.Get().AbsPath("/apis").
		SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	return announcedIn(body)
}

var errNotAnnounced = errors.New("the cluster does not list " + group + "/" + version + " yet")

func announcedIn(body []byte) error {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	for _, item := range list.Items {
		for _, v := range item.Versions {
			if item.Name == group && v.Version == version && v.Freshness == apidiscovery.DiscoveryFreshnessCurrent && len(v.Resources) > 0 {
				return nil
			}
		}
	}
	return errNotAnnounced
}
