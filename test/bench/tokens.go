package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// ways are the two ways to our server, by the name that a row gives them.
var ways = []string{"straight", "aggregated"}

// targets are types of target systems, by the algorithm that their tokens are signed with.
var targets = map[string]string{"RS256": "generic", "ES256": "gcp"}

var algorithms = []string{"RS256", "ES256"}

// concurrencies are how many requests are in flight.
var concurrencies = []int{1, 32}

const (
	tokenRequestName = "TokenRequest"
	// newConnections names requests over a TLS connection of their own each time.
	newConnections = " over new connections"
)

// ourRequest is the body of a request for a token of ours.
const ourRequest = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","spec":{"duration":"1h"}}`

// measureTokens measures tokens through the API: ours straight at the aggregated server, ours through kube-apiserver, those of
// kube-apiserver for its service accounts, and bare signatures.
func measureTokens(ctx context.Context, s settings, p plane, t *table) error {
	c, err := newClient(p)
	if err != nil {
		return err
	}
	namespace, err := c.create(ctx, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"generateName": "bench-"}})
	if err != nil {
		return err
	}
	defer func() { _ = c.remove(context.WithoutCancel(ctx), "/api/v1/namespaces/"+namespace) }()
	subjects, err := tokenSubjects(ctx, c, p, namespace)
	if err != nil {
		return err
	}
	for _, workers := range concurrencies {
		before, err := c.counters(ctx)
		if err != nil {
			return err
		}
		results, err := rounds(ctx, s, workers, subjects)
		if err != nil {
			return err
		}
		after, err := c.counters(ctx)
		if err != nil {
			return err
		}
		tokenRows(t, workers, results)
		counterRows(t, workers, before, after, ourTokens(results))
	}
	return nil
}

func tokenSubjects(ctx context.Context, c *client, p plane, namespace string) ([]subject, error) {
	kube, err := p.pid("devcluster")
	if err != nil {
		return nil, err
	}
	ours, err := p.pid("apiserver")
	if err != nil {
		return nil, err
	}
	bare, err := signatures()
	if err != nil {
		return nil, err
	}
	identities := "/apis/authentication.gardener.cloud/v1alpha1/namespaces/" + namespace + "/workloadidentities"
	accounts := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	if _, err := c.create(ctx, accounts, object("", "", "bench", nil)); err != nil {
		return nil, err
	}
	var subjects []subject
	for _, algorithm := range algorithms {
		name, system := "bench-"+targets[algorithm], map[string]any{"type": targets[algorithm]}
		identity := object("authentication.gardener.cloud/v1alpha1", "WorkloadIdentity", name, map[string]any{"audiences": []string{"bench"}, "targetSystem": system})
		if _, err := c.create(ctx, identities, identity); err != nil {
			return nil, err
		}
		path := identities + "/" + name + "/token"
		subjects = append(subjects,
			subject{name: algorithm + " straight", once: c.tokens(c.aggregated+path, ourRequest), pids: []int{ours}, aside: []int{kube}},
			subject{name: algorithm + " aggregated", once: c.tokens(c.cluster+path, ourRequest), pids: []int{ours, kube}},
			bare[algorithm],
		)
	}
	const body = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":["bench"],"expirationSeconds":3600}}`
	fresh := c.fresh()
	return append(subjects,
		subject{name: tokenRequestName, once: c.tokens(c.cluster+accounts+"/bench/token", body), pids: []int{kube}, aside: []int{ours}},
		subject{name: tokenRequestName + newConnections, once: fresh.tokens(c.cluster+accounts+"/bench/token", body), pids: []int{kube}},
		subject{name: "RS256 aggregated" + newConnections, once: fresh.tokens(c.cluster+identities+"/bench-"+targets["RS256"]+"/token", ourRequest), pids: []int{ours, kube}},
	), nil
}

func object(apiVersion, kind, name string, spec map[string]any) map[string]any {
	o := map[string]any{"metadata": map[string]any{"name": name}}
	if kind != "" {
		o["apiVersion"], o["kind"] = apiVersion, kind
	}
	if spec != nil {
		o["spec"] = spec
	}
	return o
}

// tokens returns a function that requests one token. That there is one in the answer is seen by its first letters, the same in every JWT.
func (c *client) tokens(url, body string) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := c.post(ctx, url, []byte(body))
		if err != nil {
			return err
		}
		if !bytes.Contains(answer, []byte(`"token":"eyJ`)) {
			return errors.New("the answer has no token")
		}
		return nil
	}
}

func tokenRows(t *table, workers int, results map[string]result) {
	peer := results[tokenRequestName]
	for _, algorithm := range algorithms {
		signature := results["signature "+algorithm]
		for _, way := range ways {
			ours := results[algorithm+" "+way]
			what := fmt.Sprintf("%s, %s, %d at a time: ", algorithm, way, workers)
			rest := row{
				what: what + "CPU per token less signature", unit: "µs", ours: micro(ours.cpu - signature.cpu),
				peer: tokenRequestName, theirs: micro(peer.cpu - results["signature RS256"].cpu),
			}
			// Clients go through kube-apiserver. Straight is the part of our server alone.
			perToken := row{what: what + "CPU per token", unit: "µs", ours: micro(ours.cpu), peer: tokenRequestName, theirs: micro(peer.cpu)}
			least := 3.0
			switch targeted := workers == 32; {
			case targeted && way == "straight":
				rest.target = atMost(0.6)
			case targeted:
				least = 2.2
				if algorithm == "RS256" {
					perToken.target = atMost(1)
				}
			}
			t.add(row{what: what + "tokens per second", ours: ours.perSecond, peer: tokenRequestName, theirs: peer.perSecond})
			t.add(perToken)
			t.add(row{what: what + "CPU per token", unit: "µs", ours: micro(ours.cpu), peer: "signature " + algorithm, theirs: micro(signature.cpu)})
			t.add(rest)
			if workers != 32 {
				continue
			}
			efficiency := row{what: what + "tokens per CPU second", ours: 1 / ours.cpu.Seconds(), peer: tokenRequestName, theirs: 1 / peer.cpu.Seconds()}
			if algorithm == "ES256" {
				efficiency.target = atLeast(least)
			}
			t.add(efficiency)
			if way == "straight" {
				t.add(row{what: what + "CPU per token of kube-apiserver, beside", unit: "µs", ours: micro(ours.aside), peer: tokenRequestName, theirs: micro(peer.cpu)})
			}
		}
	}
	ours, plain := results["RS256 aggregated"+newConnections], results[tokenRequestName+newConnections]
	what := fmt.Sprintf("RS256, aggregated%s, %d at a time: ", newConnections, workers)
	t.add(row{what: what + "CPU per token", unit: "µs", ours: micro(ours.cpu), peer: tokenRequestName, theirs: micro(plain.cpu)})
	t.add(row{what: what + "tokens per second", ours: ours.perSecond, peer: tokenRequestName, theirs: plain.perSecond})
}

// ourTokens returns how many tokens our server issued, both ways, while it was measured.
func ourTokens(results map[string]result) int {
	tokens := results["RS256 aggregated"+newConnections].operations
	for _, algorithm := range algorithms {
		for _, way := range ways {
			tokens += results[algorithm+" "+way].operations
		}
	}
	return tokens
}

func micro(d time.Duration) float64 { return d.Seconds() * 1e6 }
