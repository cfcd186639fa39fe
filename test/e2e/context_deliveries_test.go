package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

const deliveriesPath = "/apis/identity.credence.dev/v1alpha1/contextdeliveries"

// delivered follows what is delivered to the caller's cluster, as its agent does.
type delivered struct{ informer cache.SharedIndexInformer }

func followDeliveries(t *testing.T, config *rest.Config) delivered {
	t.Helper()
	config.UserAgent = t.Name()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	deliveries := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("contextdeliveries"))
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return deliveries.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return deliveries.Watch(ctx, options)
		},
	}, client), &unstructured.Unstructured{}, 0, cache.Indexers{})
	go informer.RunWithContext(t.Context())
	return delivered{informer}
}

// specs are the deliveries by the names of their Secrets.
func (d delivered) specs(t *testing.T) map[string]v1alpha1.ContextDeliverySpec {
	t.Helper()
	found := map[string]v1alpha1.ContextDeliverySpec{}
	for _, each := range d.informer.GetStore().List() {
		var typed v1alpha1.ContextDelivery
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(each.(*unstructured.Unstructured).Object, &typed); err != nil {
			t.Fatal(err)
		}
		key := typed.Spec.Secret.Namespace + "/" + typed.Spec.Secret.Name
		if key == "/" {
			key = "unknown " + typed.Spec.ContextObject.Name
		}
		if _, taken := found[key]; taken {
			key += " of " + typed.Spec.ContextObject.Name
		}
		found[key] = typed.Spec
	}
	return found
}

// want waits until there are exactly the Secrets that are wanted: of an identity, with its config, or a part of the problem.
func (d delivered) want(t *testing.T, want map[string]string) {
	t.Helper()
	eventually(t, func() error {
		if !d.informer.HasSynced() {
			return fmt.Errorf("the informer has not synced")
		}
		got := map[string]string{}
		for secret, spec := range d.specs(t) {
			got[secret] = summary(spec)
			if wanted, ok := want[secret]; ok && wanted != "" && strings.Contains(got[secret], wanted) {
				got[secret] = wanted
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("deliveries (-want +got):\n%s", diff)
		}
		return nil
	})
}

func summary(spec v1alpha1.ContextDeliverySpec) string {
	if spec.Problem != "" {
		return spec.Problem + spec.Config + spec.Provider
	}
	if spec.WorkloadIdentity == nil {
		return fmt.Sprintf("data %s %q by %s/%s", spec.Provider, spec.Config, spec.CredentialsBinding.Namespace, spec.CredentialsBinding.Name)
	}
	text := fmt.Sprintf("%s/%s %s %q", spec.WorkloadIdentity.Namespace, spec.WorkloadIdentity.Name, spec.Provider, spec.Config)
	if spec.CredentialsBinding != nil {
		text += " by " + spec.CredentialsBinding.Namespace + "/" + spec.CredentialsBinding.Name
	}
	return text
}

// landscape is a plane whose Shoots deliver to two clusters.
type landscape struct {
	plane
	namespace  string
	east, west *rest.Config
}

func newLandscape(t *testing.T) landscape {
	t.Helper()
	p := newPlane(t)
	l := landscape{plane: p, namespace: p.namespace(t)}
	p.gardenerInstalled(t)
	l.east, l.west = l.join(t, "east", true), l.join(t, "west", true)
	return l
}

// join makes a WorkloadCluster, and returns its agent.
func (l landscape) join(t *testing.T, name string, fromContexts bool) *rest.Config {
	t.Helper()
	l.must(t, fmt.Sprintf(`{"apiVersion":"identity.credence.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":%q},"spec":{"users":[%q],"identities":{"fromContexts":%v}}}`, name, joined(name), fromContexts), "kubectl", "apply", "-f", "-")
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

func (l landscape) patch(t *testing.T, resource, name, patch string) {
	t.Helper()
	l.must(t, "", "kubectl", "patch", resource, name, "-n", l.namespace, "--type=merge", "-p", patch)
}

func (l landscape) identity(t *testing.T, name, role string) {
	t.Helper()
	l.apply(t, `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"namespace":%q,"name":%q},"spec":{"audiences":["a"],"targetSystem":{"type":"aws","providerConfig":{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/%s"}}}}`, l.namespace, name, role)
}

func configOf(role string) string {
	return fmt.Sprintf("%q", "apiVersion: aws.authentication.gardener.cloud/v1alpha1\niamRoleARN: arn:aws:iam::112233445566:role/"+role+"\nkind: Config\n")
}

// What Shoots need comes to the agents of the clusters that they are on, and to no one else; it follows Shoots, bindings and identities. As soon as an agent
// sees a change, its requests for tokens are answered by it: nothing is remembered.
func TestPlaneContextDeliveries(t *testing.T) {
	withPlane(t)
	l := newLandscape(t)
	n := l.namespace
	l.identity(t, "banana", "dev")
	l.identity(t, "kiwi", "dns")
	l.apply(t, `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"namespace":%q,"name":"infra"},"provider":{"type":"aws"},"workloadIdentityRef":{"name":"banana"}}`, n)
	l.shoot(t, "foo", `{"seedName":"east","credentialsBindingName":"infra","dns":{"providers":[{"type":"aws-route53","workloadIdentity":{"name":"kiwi"}},{"type":"other"}]},"extensions":[{"type":"cert","workloadIdentity":{"name":"banana"}}]}`, `{"technicalID":"shoot--a--foo"}`)
	l.shoot(t, "bar", `{"seedName":"west","dns":{"providers":[{"type":"aws-route53","credentialsRef":{"kind":"WorkloadIdentity","name":"kiwi"}},{"type":"a","credentialsRef":{"kind":"Secret","name":"kiwi"}}]}}`, `{"technicalID":"shoot--bar"}`)
	east, west := followDeliveries(t, l.east), followDeliveries(t, l.west)

	infra := n + "/banana aws " + configOf("dev") + " by " + n + "/infra"
	dns, cert := n+"/kiwi aws "+configOf("dns"), n+"/banana aws "+configOf("dev")
	ofFoo := map[string]string{"shoot--a--foo/cloudprovider": infra, "shoot--a--foo/workloadidentity-dns-aws-route53": dns, "shoot--a--foo/workloadidentity-extension-cert": cert}
	ofBar := map[string]string{"shoot--bar/workloadidentity-dns-aws-route53": dns}
	east.want(t, ofFoo)
	west.want(t, ofBar)
	l.landscapeObject(t, "Project", "", "p-"+n, fmt.Sprintf(`{"namespace":%q}`, n))
	foo := l.must(t, "", "kubectl", "get", "shoots."+landscapeGroup, "foo", "-n", n, "-o", "jsonpath={.metadata.uid}")
	answer := func(agent *rest.Config, identity string, code int, words string) error {
		return wantAnswer(do(t, agent, "POST", tokenPath(n, identity), "application/json", tokenRequest(inContext(n, "foo", foo))), code, words)
	}
	now := func(agent *rest.Config, identity string, code int, words string) {
		t.Helper()
		if err := answer(agent, identity, code, words); err != nil {
			t.Errorf("a token of %s, once the agent has seen the change: %v", identity, err)
		}
	}
	eventually(t, func() error { return answer(l.east, "banana", 201, "token") })
	now(l.west, "banana", 403, "it is not on WorkloadCluster west")

	// While it moves, it is on both.
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"seedName":"west"},"status":{"seedName":"east"}}`)
	both := map[string]string{"shoot--bar/workloadidentity-dns-aws-route53": dns}
	for secret, of := range ofFoo {
		both[secret] = of
	}
	west.want(t, both)
	east.want(t, ofFoo)
	now(l.west, "banana", 201, "token")
	now(l.east, "banana", 201, "token")
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"status":{"seedName":"west"}}`)
	east.want(t, map[string]string{})
	now(l.east, "banana", 403, "it is not on WorkloadCluster east")
	west.want(t, both)
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"seedName":"east"},"status":{"seedName":null}}`)
	east.want(t, ofFoo)
	west.want(t, ofBar)
	now(l.west, "banana", 403, "it is not on WorkloadCluster west")
	now(l.east, "banana", 201, "token")

	// References come and go; one that is invalid hides none of the others.
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"extensions":[{"type":"cert","workloadIdentity":{"name":"banana"}},{"type":"acme","workloadIdentity":{"name":"kiwi"}}]}}`)
	ofFoo["shoot--a--foo/workloadidentity-extension-acme"] = dns
	east.want(t, ofFoo)
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"extensions":[{"type":"A/B","workloadIdentity":{"name":"banana"}},{"type":"acme","workloadIdentity":{"name":"nothing"}}]}}`)
	delete(ofFoo, "shoot--a--foo/workloadidentity-extension-cert")
	delete(ofFoo, "shoot--a--foo/workloadidentity-extension-acme")
	ofFoo["unknown foo"] = `deliver.secretName: "workloadidentity-extension-A/B" is not the name of a Secret`
	east.want(t, ofFoo)
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"extensions":[{"type":"acme","workloadIdentity":{"name":"nothing"}}]}}`)
	delete(ofFoo, "unknown foo")
	ofFoo["shoot--a--foo/workloadidentity-extension-acme"] = "WorkloadIdentity " + n + "/nothing does not exist"
	east.want(t, ofFoo)
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"extensions":null}}`)
	delete(ofFoo, "shoot--a--foo/workloadidentity-extension-acme")
	east.want(t, ofFoo)

	// A changed identity is followed, for all objects that use it.
	l.identity(t, "kiwi", "moved")
	dns = n + "/kiwi aws " + configOf("moved")
	ofFoo["shoot--a--foo/workloadidentity-dns-aws-route53"], ofBar["shoot--bar/workloadidentity-dns-aws-route53"] = dns, dns
	east.want(t, ofFoo)
	west.want(t, ofBar)

	// A binding that refers to another identity, to a Secret, and back.
	l.identity(t, "apple", "apple")
	l.patch(t, "credentialsbinding", "infra", `{"workloadIdentityRef":{"name":"apple"}}`)
	ofFoo["shoot--a--foo/cloudprovider"] = n + "/apple aws " + configOf("apple") + " by " + n + "/infra"
	east.want(t, ofFoo)
	now(l.east, "banana", 403, "does not refer to WorkloadIdentity "+n+"/banana")
	now(l.east, "apple", 201, "token")
	l.patch(t, "credentialsbinding", "infra", `{"workloadIdentityRef":null,"secretRef":{"name":"static"}}`)
	ofFoo["shoot--a--foo/cloudprovider"] = `data aws "" by ` + n + "/infra"
	east.want(t, ofFoo)
	// A list has neither the data nor the name of its Secret.
	if got := do(t, l.east, "GET", deliveriesPath, "", ""); strings.Contains(string(got.Body), "static") {
		t.Errorf("deliveries name the Secret: %s", got.Body)
	}
	l.patch(t, "credentialsbinding", "infra", `{"workloadIdentityRef":{"name":"apple"},"secretRef":null}`)
	ofFoo["shoot--a--foo/cloudprovider"] = n + "/apple aws " + configOf("apple") + " by " + n + "/infra"
	east.want(t, ofFoo)
	l.must(t, "", "kubectl", "delete", "credentialsbinding", "infra", "-n", n)
	ofFoo["shoot--a--foo/cloudprovider"] = "CredentialsBinding " + n + "/infra does not exist"
	east.want(t, ofFoo)
	now(l.east, "apple", 403, "does not refer to WorkloadIdentity "+n+"/apple")
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"extensions":[{"type":"cert","workloadIdentity":{"name":"apple"}}]}}`)
	ofFoo["shoot--a--foo/workloadidentity-extension-cert"] = n + "/apple aws " + configOf("apple")
	east.want(t, ofFoo)
	now(l.east, "apple", 201, "token")
	l.patch(t, "shoots."+landscapeGroup, "foo", `{"spec":{"extensions":null}}`)
	delete(ofFoo, "shoot--a--foo/workloadidentity-extension-cert")
	east.want(t, ofFoo)
	now(l.east, "apple", 403, "does not refer to WorkloadIdentity "+n+"/apple")

	// An identity that is gone has no config any more, and the Secret stays known; made anew, it has.
	l.must(t, "", "kubectl", "delete", "wi", "kiwi", "-n", n)
	ofFoo["shoot--a--foo/workloadidentity-dns-aws-route53"] = "WorkloadIdentity " + n + "/kiwi does not exist"
	east.want(t, ofFoo)
	l.identity(t, "kiwi", "dns")
	ofFoo["shoot--a--foo/workloadidentity-dns-aws-route53"] = n + "/kiwi aws " + configOf("dns")
	east.want(t, ofFoo)

	// A renewal that an object requests.
	renewal := func() string { return east.specs(t)["shoot--a--foo/workloadidentity-dns-aws-route53"].Renewal }
	if got := renewal(); got != "" {
		t.Errorf("a renewal is requested: %s", got)
	}
	l.must(t, "", "kubectl", "annotate", "shoots."+landscapeGroup, "foo", "-n", n, "gardener.cloud/operation=renew-workload-identity-token")
	eventually(t, func() error {
		if got := renewal(); !strings.HasPrefix(got, "20") {
			return fmt.Errorf("renewal is %q, want a time", got)
		}
		return nil
	})
	l.must(t, "", "kubectl", "annotate", "shoots."+landscapeGroup, "foo", "-n", n, "gardener.cloud/operation-")
	eventually(t, func() error {
		if got := renewal(); got != "" {
			return fmt.Errorf("renewal is %q, want none", got)
		}
		return nil
	})

	// Two Shoots that name one Secret: the one that was created first keeps it.
	l.shoot(t, "a--foo", `{"seedName":"east","dns":{"providers":[{"type":"aws-route53","workloadIdentity":{"name":"banana"}}]}}`, `{"technicalID":"shoot--a--foo"}`)
	eventually(t, func() error {
		var shared int
		for _, each := range east.informer.GetStore().List() {
			problem, _, _ := unstructured.NestedString(each.(*unstructured.Unstructured).Object, "spec", "problem")
			if strings.Contains(problem, "Shoot "+n+"/foo, created earlier, has the Secret shoot--a--foo/workloadidentity-dns-aws-route53, too") {
				shared++
			}
		}
		if shared != 1 {
			return fmt.Errorf("%d deliveries have a problem by another object, want 1", shared)
		}
		return nil
	})
	l.must(t, "", "kubectl", "delete", "shoots."+landscapeGroup, "a--foo", "-n", n)
	east.want(t, ofFoo)

	// The process ends, and another one takes its place.
	l.killPart(t, "apiserver")
	l.patch(t, "shoots."+landscapeGroup, "bar", `{"spec":{"seedName":"east"}}`)
	west.want(t, map[string]string{})
	ofFoo["shoot--bar/workloadidentity-dns-aws-route53"] = n + "/kiwi aws " + configOf("dns")
	east.want(t, ofFoo)

	// Without its ContextKind nothing is delivered.
	l.must(t, "", "kubectl", "delete", "contextkind", "shoots."+landscapeGroup)
	east.want(t, map[string]string{})
}

// A user sees what is delivered to the one cluster that they are of, and only as far as that may have it.
func TestPlaneContextDeliveryCallers(t *testing.T) {
	withPlane(t)
	l := newLandscape(t)
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
		"an admin":              {l.config(t), "", 403, "is in no WorkloadCluster"},
		"no cluster":            {l.agent(t, "south"), "", 403, `user \"system:serviceaccount:workload-clusters:south\" is in no WorkloadCluster`},
		"no rights":             {l.as(t, "stranger"), "", 403, `cannot list resource`},
		"an old version":        {l.east, "?watch=1&resourceVersion=1", 410, "list again"},
		"a later version":       {l.east, "?watch=1&resourceVersion=18446744073709551615", 410, "list again"},
		"no version":            {l.east, "?watch=1&resourceVersion=x", 400, "resourceVersion"},
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

	// A person in a cluster needs the right, and has no more of it than that cluster.
	l.clusterRole(t, "reader", "reader", rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"contextdeliveries"}, Verbs: []string{"get", "list", "watch"}})
	eventually(t, func() error { return wantAnswer(get(l.as(t, "reader"), ""), 403, "is in no WorkloadCluster") })

	// A watch ends when its user is taken off the cluster; a user of two clusters sees nothing, and so does one of a cluster that is gone.
	east := followDeliveries(t, l.east)
	east.want(t, map[string]string{"shoot--foo/workloadidentity-dns-d": n + "/kiwi aws " + configOf("dns")})
	l.must(t, "", "kubectl", "patch", "workloadcluster", "east", "--type=merge", "-p", `{"spec":{"identities":{"fromContexts":false}}}`)
	east.want(t, map[string]string{"shoot--foo/workloadidentity-dns-d": "may not have identities of the namespace " + n})
	l.must(t, "", "kubectl", "patch", "workloadcluster", "east", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"identities":{"namespaces":[%q]}}}`, n))
	east.want(t, map[string]string{"shoot--foo/workloadidentity-dns-d": n + "/kiwi aws " + configOf("dns")})
	client, err := rest.HTTPClientFor(l.east)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", l.east.Host+deliveriesPath+"?watch=1&timeoutSeconds=300", nil)
	if err != nil {
		t.Fatal(err)
	}
	running, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Body.Close()
	l.must(t, "", "kubectl", "delete", "workloadcluster", "east")
	var last v1alpha1.ContextDelivery
	var event struct {
		Type   string
		Object json.RawMessage
	}
	for stream := json.NewDecoder(running.Body); event.Type != "ERROR"; {
		if err := stream.Decode(&event); err != nil {
			t.Fatalf("the watch ends with %v", err)
		}
		if event.Type != "ERROR" && json.Unmarshal(event.Object, &last) != nil {
			t.Errorf("event %s", event.Object)
		}
	}
	if !strings.Contains(string(event.Object), "the WorkloadCluster of the caller has changed") || last.Spec.Secret.Namespace != "shoot--foo" {
		t.Errorf("the watch did not end with 410; its last object is %+v", last)
	}
	eventually(t, func() error { return wantAnswer(get(l.east, ""), 403, "is in no WorkloadCluster") })
}
