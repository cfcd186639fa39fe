package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

const deliveriesPath = "/apis/identity.credence.dev/v1alpha1/contextdeliveries"

// landscape is a plane whose Shoots deliver to two clusters.
type landscape struct {
	plane
	namespace  string
	east, west *rest.Config
}

func newLandscape(t *testing.T, p plane) landscape {
	t.Helper()
	l := landscape{plane: p, namespace: p.namespace(t)}
	p.gardenerInstalled(t)
	l.east, l.west = l.join(t, "east", true), l.join(t, "west", true)
	return l
}

// join makes a WorkloadCluster, and returns its agent.
func (l landscape) join(t *testing.T, name string, fromContexts bool) *rest.Config {
	t.Helper()
	l.must(t, fmt.Sprintf(`{"apiVersion":"identity.credence.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":%q},"spec":{"users":[%q],"identities":{"fromContexts":%v}}}`, name, joined(name), fromContexts), "kubectl", "apply", "-f", "-")
	l.forgetCluster(t, name)
	return l.agent(t, name)
}

// agent is the service account of a cluster that has joined.
func (l landscape) agent(t *testing.T, name string) *rest.Config {
	t.Helper()
	return l.as(t, joined(name), "system:serviceaccounts", "system:serviceaccounts:"+v1alpha1.WorkloadClusters)
}

func (l landscape) apply(t *testing.T, format string, args ...any) {
	t.Helper()
	l.must(t, fmt.Sprintf(format, args...), "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-")
}

func (l landscape) shoot(t *testing.T, name, spec, status string) {
	t.Helper()
	l.apply(t, `{"apiVersion":"%s/v1beta1","kind":"Shoot","metadata":{"namespace":%q,"name":%q},"spec":%s,"status":%s}`, landscapeGroup, l.namespace, name, spec, status)
}

func (l landscape) identity(t *testing.T, name, role string) {
	t.Helper()
	l.apply(t, `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"namespace":%q,"name":%q},"spec":{"audiences":["a"],"targetSystem":{"type":"aws","providerConfig":{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/%s"}}}}`, l.namespace, name, role)
}

// A user sees what is delivered to the one cluster that they are of, and only as far as that may have it. It runs alone: the kinds are
// of the whole cluster.
func TestPlaneContextDeliveryCallers(t *testing.T) {
	l := newLandscape(t, alone(t))
	n := l.namespace
	l.identity(t, "kiwi", "dns")
	shoot := func(name, cluster string) {
		l.shoot(t, name, fmt.Sprintf(`{"seedName":%q,"dns":{"providers":[{"type":"d","workloadIdentity":{"name":"kiwi"}}]}}`, cluster), fmt.Sprintf(`{"technicalID":"shoot--%s"}`, name))
	}
	shoot("foo", "east")
	shoot("bar", "west")
	closed := l.join(t, "closed", false)
	shoot("closed", "closed")
	get := func(config *rest.Config, path string) response {
		return do(t, config, "GET", deliveriesPath+path, "", "")
	}
	list := func(config *rest.Config, query string) v1alpha1.ContextDeliveryList {
		t.Helper()
		got := get(config, query)
		var found v1alpha1.ContextDeliveryList
		if err := json.Unmarshal(got.Body, &found); err != nil || got.Code != http.StatusOK {
			t.Fatalf("list: %d %s", got.Code, got.Body)
		}
		return found
	}
	one := func(config *rest.Config, query string) v1alpha1.ContextDelivery {
		t.Helper()
		var found v1alpha1.ContextDeliveryList
		eventually(t, func() error {
			if err := wantAnswer(get(config, query), 200, "ContextDeliveryList"); err != nil {
				return err
			}
			if found = list(config, query); len(found.Items) != 1 {
				return fmt.Errorf("%d deliveries, want 1", len(found.Items))
			}
			return nil
		})
		return found.Items[0]
	}
	ofEast, ofWest := one(l.east, ""), one(l.west, "")
	if ofEast.Spec.Secret.Namespace != "shoot--foo" || ofWest.Spec.Secret.Namespace != "shoot--bar" || ofEast.Spec.Config == "" {
		t.Errorf("east has %+v, west %+v", ofEast.Spec, ofWest.Spec)
	}
	if of := one(closed, ""); !strings.Contains(of.Spec.Problem, "WorkloadCluster closed may not have identities of the namespace "+n) || of.Spec.Config+of.Spec.Provider != "" {
		t.Errorf("a cluster that may not have the identity has %+v", of.Spec)
	}
	for name, c := range map[string]struct {
		config *rest.Config
		path   string
		code   int
		words  string
	}{
		"its own":               {l.east, "/" + ofEast.Name, 200, "shoot--foo"},
		"another cluster's":     {l.east, "/" + ofWest.Name, 404, "not found"},
		"by a field":            {l.east, "?fieldSelector=metadata.name%3D" + ofEast.Name, 200, "shoot--foo"},
		"by another field":      {l.east, "?fieldSelector=spec.provider%3Daws", 400, "is not a known field selector"},
		"by a label":            {l.east, "?labelSelector=a%3Db", 200, `"items":[]`},
		"by another's name":     {l.east, "?fieldSelector=metadata.name%3D" + ofWest.Name, 200, `"items":[]`},
		"an admin":              {l.config(t), "", 200, `"items":[]`},
		"an admin, by name":     {l.config(t), "/" + ofEast.Name, 404, "not found"},
		"no cluster":            {l.agent(t, "south"), "", 403, `user \"system:serviceaccount:workload-clusters:south\" is in no WorkloadCluster`},
		"no rights":             {l.as(t, "stranger"), "", 403, `cannot list resource`},
		"an old version's list": {l.east, "?resourceVersion=1", 200, "shoot--foo"},
	} {
		if err := wantAnswer(get(c.config, c.path), c.code, c.words); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		path := deliveriesPath
		if method != "POST" {
			path += "/" + ofEast.Name
		}
		if got := do(t, l.config(t), method, path, "application/json", `{"apiVersion":"identity.credence.dev/v1alpha1","kind":"ContextDelivery","metadata":{"name":"a"}}`); got.Code != http.StatusMethodNotAllowed && got.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", method, got.Code, got.Body)
		}
	}
	table := l.must(t, "", "kubectl", "get", "contextdeliveries", "--as", joined("east"), "--as-group", "system:serviceaccounts:"+v1alpha1.WorkloadClusters, "--as-group", "system:authenticated")
	if !strings.Contains(table, "SECRET") || !strings.Contains(table, "shoot--foo/workloadidentity-dns-d") || !strings.Contains(table, "Shoot "+n+"/foo") {
		t.Errorf("kubectl get:\n%s", table)
	}

	l.explains(t)

	// A person needs the right, and has nothing by it but of their own cluster.
	l.clusterRole(t, "reader", "reader", rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"contextdeliveries"}, Verbs: []string{"get", "list", "watch"}})
	eventually(t, func() error { return wantAnswer(get(l.as(t, "reader"), ""), 200, `"items":[]`) })

	// A cluster that may not have the identity has its problem, and one that is gone has nothing.
	// The second patch gives what the first took: the order counts.
	for _, c := range [][2]string{{`{"fromContexts":false}`, "may not have identities of the namespace " + n}, {`{"namespaces":["` + n + `"]}`, "role/dns"}} {
		l.must(t, "", "kubectl", "patch", "workloadcluster", "east", "--type=merge", "-p", `{"spec":{"identities":`+c[0]+`}}`)
		eventually(t, func() error { return wantAnswer(get(l.east, ""), 200, c[1]) })
	}
	l.must(t, "", "kubectl", "delete", "workloadcluster", "east")
	eventually(t, func() error { return wantAnswer(get(l.east, ""), 403, "is in no WorkloadCluster") })
}
