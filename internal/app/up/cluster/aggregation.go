package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
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
)

// version is that of every group.
const version = "v1alpha1"

const touchAnnotation = "up.credence.dev/registered-at"

// tokenGroup is the group of WorkloadIdentity and its tokens.
const tokenGroup = "authentication.gardener.cloud"

// groups are the API groups of the aggregated API server.
func groups() []string { return []string{tokenGroup, "identity.credence.dev"} }

func apiServiceName(group string) string { return version + "." + group }

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Registration is where the aggregated API server listens, and whose certificate it shows.
type Registration struct {
	Port int
	// CA is the PEM of the authority of its serving certificate.
	CA []byte
}

// Register makes the cluster send requests for the groups of the aggregated API server to localhost. at is written to the
// APIServices: a change makes the cluster look at once whether the server is there, rather than after a back-off.
func (c *Client) Register(ctx context.Context, registration Registration, at time.Time) error {
	objects := []*unstructured.Unstructured{service(registration)}
	for _, group := range groups() {
		objects = append(objects, apiService(group, registration, at))
	}
	return c.Apply(ctx, objects)
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

func apiService(group string, registration Registration, at time.Time) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata": map[string]any{
			"name":        apiServiceName(group),
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
	for _, group := range groups() {
		if err := c.available(ctx, apiServiceName(group)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) available(ctx context.Context, name string) error {
	object, err := c.objects.Resource(apiServices).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get APIService %s: %w", name, err)
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read APIService %s: %w", name, err)
	}
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("APIService %s is not available: %v: %v", name, condition["reason"], condition["message"])
	}
	return fmt.Errorf("APIService %s has not been looked at yet", name)
}

// WaitAvailable waits until the cluster reaches the aggregated API server, and lists its resources and their schemas for clients.
func (c *Client) WaitAvailable(ctx context.Context) error {
	return c.repeat(ctx, always, func() error {
		if err := c.Available(ctx); err != nil {
			return err
		}
		if err := c.announced(ctx); err != nil {
			return err
		}
		return c.described(ctx)
	})
}

// announced returns nil once kubectl finds the resources: the cluster's own list of them trails the APIService's condition.
func (c *Client) announced(ctx context.Context) error {
	body, err := c.plain.Get().AbsPath("/apis").
		SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	return announcedIn(body)
}

func announcedIn(body []byte) error {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	for _, group := range groups() {
		if !listed(list, group) {
			return fmt.Errorf("the cluster does not list %s/%s yet", group, version)
		}
	}
	return nil
}

// described returns nil once kubectl finds the schemas: the cluster fetches them after it has listed the resources.
func (c *Client) described(ctx context.Context) error {
	body, err := c.plain.Get().AbsPath("/openapi/v3").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("list schemas: %w", err)
	}
	var index struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(body, &index); err != nil {
		return fmt.Errorf("list schemas: %w", err)
	}
	for _, group := range groups() {
		if _, known := index.Paths["apis/"+group+"/"+version]; !known {
			return fmt.Errorf("the cluster has no schemas of %s/%s yet", group, version)
		}
	}
	return nil
}

func listed(list apidiscovery.APIGroupDiscoveryList, group string) bool {
	for _, item := range list.Items {
		for _, v := range item.Versions {
			if item.Name == group && v.Version == version && v.Freshness == apidiscovery.DiscoveryFreshnessCurrent && len(v.Resources) > 0 {
				return true
			}
		}
	}
	return false
}
