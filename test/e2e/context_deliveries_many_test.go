package e2e_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// Five hundred references change at once while the server is killed: the agent of the cluster has all of them as they are then. A binding to
// which all refer is one change more.
func TestPlaneManyContextDeliveries(t *testing.T) {
	withPlane(t)
	l := newLandscape(t)
	const many = 500
	l.identity(t, "banana", "dev")
	l.identity(t, "kiwi", "other")
	l.apply(t, `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"namespace":%q,"name":"infra"},"provider":{"type":"aws"},"workloadIdentityRef":{"name":"banana"}}`, l.namespace)
	shoots := "/apis/" + landscapeGroup + "/v1beta1/namespaces/" + l.namespace + "/shoots"
	admin := l.config(t)
	admin.QPS = -1
	// each sends a request for each Shoot from one to another, ten at a time.
	each := func(from, to int, method, contentType string, request func(i int) (path, body string)) {
		t.Helper()
		var sending sync.WaitGroup
		for first := range 10 {
			sending.Go(func() {
				for i := from + first; i < to; i += 10 {
					path, body := request(i)
					if got := do(t, admin, method, shoots+path, contentType, body); got.Code >= 300 {
						t.Errorf("%s %s: %d %s", method, path, got.Code, got.Body)
					}
				}
			})
		}
		sending.Wait()
	}
	want := func(infra, dns string) map[string]string {
		all := map[string]string{}
		for i := range many {
			all[fmt.Sprintf("shoot--foo-%d/cloudprovider", i)] = infra
			all[fmt.Sprintf("shoot--foo-%d/workloadidentity-dns-d", i)] = dns
		}
		return all
	}
	each(0, many, "POST", "application/json", func(i int) (string, string) {
		return "", fmt.Sprintf(`{"apiVersion":"%s/v1beta1","kind":"Shoot","metadata":{"name":"foo-%d"},"spec":{"seedName":"east","credentialsBindingName":"infra","dns":{"providers":[{"type":"d","workloadIdentity":{"name":"banana"}}]}},"status":{"technicalID":"shoot--foo-%d"}}`, landscapeGroup, i, i)
	})
	banana, kiwi := l.namespace+"/banana aws "+configOf("dev"), l.namespace+"/kiwi aws "+configOf("other")
	by := " by " + l.namespace + "/infra"
	east := followDeliveries(t, l.east)
	east.want(t, want(banana+by, banana))

	begun := time.Now()
	l.patch(t, "credentialsbinding", "infra", `{"workloadIdentityRef":{"name":"kiwi"}}`)
	east.want(t, want(kiwi+by, banana))
	t.Logf("%d deliveries follow one binding in %s", many, time.Since(begun).Round(time.Millisecond))

	begun = time.Now()
	change := func(i int) (string, string) {
		return fmt.Sprintf("/foo-%d", i), `{"spec":{"dns":{"providers":[{"type":"d","workloadIdentity":{"name":"kiwi"}}]}}}`
	}
	each(0, many/2, "PATCH", "application/merge-patch+json", change)
	l.kill(t, "apiserver")
	each(many/2, many, "PATCH", "application/merge-patch+json", change)
	east.want(t, want(kiwi+by, kiwi))
	t.Logf("%d references that changed while the server was killed are followed in %s", many, time.Since(begun).Round(time.Millisecond))
}
