package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// neighbor is one of two clusters that have joined a third one: a plane, and the credentials of its agent.
type neighbor struct {
	plane
	garden        plane
	agent         *rest.Config
	cluster, ours string
}

// tokenFor requests a token for a Shoot as the agent.
func (n neighbor) tokenFor(t *testing.T, shoot, uid string) response {
	t.Helper()
	return do(t, n.agent, "POST", tokenPath(n.ours, "banana-testing"), "application/json", tokenRequest(inContext(n.ours, shoot, uid)))
}

// has waits until the agent is answered a request for a token for a Shoot.
func (n neighbor) has(t *testing.T, shoot, uid string, code int, words string) {
	t.Helper()
	eventually(t, func() error { return wantAnswer(n.tokenFor(t, shoot, uid), code, words) })
}

// deliveries waits until the server knows what is delivered to the cluster. One that was killed has to read that first, also after the objects.
func (n neighbor) deliveries(t *testing.T) []byte {
	t.Helper()
	var list response
	eventually(t, func() error {
		list = do(t, n.agent, "GET", deliveriesPath, "", "")
		return wantAnswer(list, http.StatusOK, "ContextDeliveryList")
	})
	return list.Body
}

// deliveriesOf are the names of what is delivered to the cluster for a Shoot.
func (n neighbor) deliveriesOf(t *testing.T, shoot string) []string {
	t.Helper()
	var list identityv1alpha1.ContextDeliveryList
	if err := json.Unmarshal(n.deliveries(t), &list); err != nil {
		t.Fatalf("what is delivered to %s: %v", n.cluster, err)
	}
	var names []string
	for _, each := range list.Items {
		if each.Spec.ContextObject.Name == shoot {
			names = append(names, each.Name)
		}
	}
	return names
}

// names are the claims of a token that name its cluster and its Shoot.
func names(t *testing.T, token string) string {
	t.Helper()
	_, c := claims(t, token)
	of := c["gardener.cloud"].(map[string]any)
	member := func(claim, key string) string { return of[claim].(map[string]any)[key].(string) }
	return member("seed", "name") + " " + member("shoot", "uid")
}

// moveShoot moves a Shoot from a cluster to another one, which is started for it, while both agents request tokens for it. Both have them meanwhile, each with
// its own name, and each attacks what the other has, before, meanwhile and after. The Shoot foo stays on the first, whose agent is left to more attacks.
func moveShoot(t *testing.T, east neighbor, foo string) stolen {
	t.Helper()
	garden, ours := east.garden, east.ours
	west := neighbor{garden: garden, cluster: "w-" + ours, ours: ours}
	watches.take(t, watches.enter(ofPlane, urgent))
	west.plane, west.agent = garden.joinSeed(t, west.cluster, ours)
	there := "shoot--" + ours + "--nomad"
	for _, p := range []neighbor{east, west} {
		p.namespaceOf(t, there)
	}
	nomad := garden.landscapeObject(t, "Shoot", ours, "nomad", fmt.Sprintf(`{"seedName":%q,"credentialsBindingName":"infra"}`, east.cluster))
	garden.patchShoot(t, ours, "nomad", fmt.Sprintf(`{"status":{"technicalID":%q,"seedName":%q}}`, there, east.cluster))
	// on are the clusters that the Shoot may be on. requested has both agents request a token: each that is issued is for one of them, and names it.
	on := map[string]bool{east.cluster: true}
	requested := func() {
		t.Helper()
		for _, p := range []neighbor{east, west} {
			switch got := p.tokenFor(t, "nomad", nomad); got.Code {
			case http.StatusCreated:
				if got := names(t, decodeTokenRequest(t, got).Status.Token); got != p.cluster+" "+nomad || !on[p.cluster] {
					t.Errorf("%s has a token of %s, and the Shoot is on %v", p.cluster, got, on)
				}
			case http.StatusForbidden, http.StatusServiceUnavailable:
			default:
				t.Errorf("%s is answered %d %s", p.cluster, got.Code, got.Body)
			}
		}
	}
	delivered := func(p neighbor) {
		t.Helper()
		eventually(t, func() error {
			requested()
			secret, err := p.client(t).CoreV1().Secrets(there).Get(t.Context(), "cloudprovider", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(secret.Data["token"]) == 0 {
				return fmt.Errorf("the Secret of %s has no token; Events: %v", p.cluster, p.warnings(t, there))
			}
			if got := names(t, string(secret.Data["token"])); got != p.cluster+" "+nomad {
				return fatal{fmt.Errorf("the Secret of %s has a token of %s", p.cluster, got)}
			}
			return nil
		})
	}
	issued := func(p neighbor) {
		t.Helper()
		p.has(t, "nomad", nomad, http.StatusCreated, "token")
		if got := names(t, decodeTokenRequest(t, p.tokenFor(t, "nomad", nomad)).Status.Token); got != p.cluster+" "+nomad {
			t.Errorf("the agent of %s has a token of %s", p.cluster, got)
		}
	}
	// others are refused to an agent: a Shoot of the other cluster, its data, and what is delivered there.
	others := func(p, other neighbor, shoot, uid string) {
		t.Helper()
		words := "it is not on WorkloadCluster " + p.cluster
		p.has(t, shoot, uid, http.StatusForbidden, words)
		if err := wantAnswer(dataFor(t, p.agent, ours, "infra", inContext(ours, shoot, uid)), http.StatusForbidden, "is not on WorkloadCluster "+p.cluster); err != nil {
			t.Errorf("data for %s: %v", shoot, err)
		}
		if got := p.deliveries(t); strings.Contains(string(got), "--"+shoot+`"`) {
			t.Errorf("what is delivered to %s: %s", p.cluster, got)
		}
		there := other.deliveriesOf(t, shoot)
		if len(there) == 0 {
			t.Errorf("nothing is delivered to %s for %s", other.cluster, shoot)
		}
		for _, name := range there {
			if err := wantAnswer(do(t, p.agent, "GET", deliveriesPath+"/"+name, "", ""), http.StatusNotFound, "not found"); err != nil {
				t.Errorf("what is delivered to %s, by its name: %v", other.cluster, err)
			}
		}
	}

	t.Log("before a Shoot moves")
	delivered(east)
	issued(east)
	others(west, east, "nomad", nomad)
	others(west, east, "foo", foo)

	t.Log("while it moves")
	on[west.cluster] = true
	garden.patchShoot(t, ours, "nomad", fmt.Sprintf(`{"spec":{"seedName":%q}}`, west.cluster))
	delivered(west)
	delivered(east)
	issued(west)
	issued(east)
	others(west, east, "foo", foo)
	stolen := attackSeed(t, garden, east.agent, east.cluster, west.cluster, ours, "foo", foo)
	attackSeed(t, garden, west.agent, west.cluster, east.cluster, ours, "nomad", nomad)

	// The server begins anew, and what the agent knows is stale: no token from now on.
	t.Log("after it has moved")
	garden.patchShoot(t, ours, "nomad", fmt.Sprintf(`{"status":{"seedName":%q}}`, west.cluster))
	garden.kill(t, "apiserver")
	on[east.cluster] = false
	moved := time.Now()
	eventually(t, func() error {
		requested()
		got := east.tokenFor(t, "nomad", nomad)
		if got.Code == http.StatusCreated {
			return fatal{fmt.Errorf("%s has a token for a Shoot that has left it", east.cluster)}
		}
		return wantAnswer(got, http.StatusForbidden, "it is not on WorkloadCluster "+east.cluster)
	})
	t.Logf("refused %s after the move, with a server that was killed", time.Since(moved).Round(time.Millisecond))
	eventually(t, func() error {
		requested()
		if _, err := east.client(t).CoreV1().Secrets(there).Get(t.Context(), "cloudprovider", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret is still in %s: %v", east.cluster, err)
		}
		return nil
	})
	t.Logf("its Secret is gone %s after the move", time.Since(moved).Round(time.Millisecond))
	others(east, west, "nomad", nomad)
	others(west, east, "foo", foo)
	issued(west)
	delivered(west)
	stolen.left = func() {
		t.Helper()
		issued(west)
		east.has(t, "nomad", nomad, http.StatusUnauthorized, "")
		garden.must(t, "", "kubectl", "delete", "-n", ours, "shoots."+landscapeGroup, "nomad")
		west.has(t, "nomad", nomad, http.StatusForbidden, "")
	}
	return stolen
}
