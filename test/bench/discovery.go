package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// discoveryConcurrency is how many relying parties ask at a time.
const discoveryConcurrency = 16

// discoveryLimitMB is what the discovery server may hold at most.
const discoveryLimitMB = 40

// measureDiscovery measures the key set, over 16 connections that are kept, beside a bare handler of the same bytes.
func measureDiscovery(ctx context.Context, s settings, p plane, t *table) error {
	client, err := relyingParty(p.CAFile)
	if err != nil {
		return err
	}
	body, err := get(ctx, client, p.JWKS)
	if err != nil {
		return err
	}
	folder := filepath.Join(p.dir, "pki", "discovery")
	bare, err := startBare(ctx, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"), body)
	if err != nil {
		return err
	}
	defer bare.stop()
	ours, keySet, err := copyDiscovery(ctx, p, client)
	if err != nil {
		return err
	}
	defer ours.stop()
	ask := func(url string) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := get(ctx, client, url)
			if err == nil && len(got) != len(body) {
				err = fmt.Errorf("%s: %d bytes, want %d", url, len(got), len(body))
			}
			return err
		}
	}
	results, err := rounds(ctx, s, discoveryConcurrency, []subject{
		{name: "discovery", once: ask(keySet), pids: []int{ours.pid}},
		{name: "bare", once: ask("https://" + bare.ready + "/"), pids: []int{bare.pid}},
	})
	if err != nil {
		return err
	}
	memory, err := residentMB(ours.pid)
	if err != nil {
		return err
	}
	bareMemory, err := residentMB(bare.pid)
	if err != nil {
		return err
	}
	discovery, handler := results["discovery"], results["bare"]
	const what, peer = "discovery, 16 at a time: ", "bare net/http"
	t.add(row{what: what + "requests per second", ours: discovery.perSecond, peer: peer, theirs: handler.perSecond})
	t.add(row{what: what + "CPU per request", unit: "µs", ours: micro(discovery.cpu), peer: peer, theirs: micro(handler.cpu), target: atMost(1.15)})
	t.add(row{what: what + "p99", unit: "ms", ours: discovery.p99.Seconds() * 1e3, peer: peer, theirs: handler.p99.Seconds() * 1e3, target: atMost(1.25)})
	t.add(row{what: "memory of discovery, after load", unit: "MB", ours: memory, peer: peer, theirs: bareMemory})
	t.add(row{what: "memory of discovery, after load", unit: "MB", ours: memory, peer: "the limit", theirs: discoveryLimitMB, target: atMost(1)})
	return nil
}

// relyingParty returns a client with a connection of its own for each request in flight, as many relying parties have.
func relyingParty(caFile string) (*http.Client, error) {
	authority, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", caFile)
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13},
		MaxIdleConnsPerHost: discoveryConcurrency,
	}}, nil
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return send(client, request, http.StatusOK)
}
