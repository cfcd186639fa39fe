package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

const (
	// storedIdentities are what is listed and watched.
	storedIdentities = 10000
	// pageOf is the page of a list, as kubectl requests it.
	pageOf = 500
)

// stored is an API server of its own, with a storage and keys of its own, and a client that calls it straight.
type stored struct {
	*client
	copied
	name string
	// aside are the processes that do a part of its work.
	aside []int
	// again starts it once more, after it was stopped, with what it has stored.
	again   func(context.Context) (copied, error)
	path    string // of identities
	created atomic.Int64
}

// against is a peer, and the target of the time for one; 0: none.
type against struct {
	*stored
	limit float64
}

// measureStorage measures API servers that differ in where they store: in records of the cluster, in an etcd of their own, by TLS, and in one that is
// embedded.
func measureStorage(ctx context.Context, s settings, p plane, t *table) error {
	c, err := newClient(p)
	if err != nil {
		return err
	}
	namespace, err := c.create(ctx, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"generateName": "bench-"}})
	if err != nil {
		return err
	}
	defer func() { _ = c.remove(context.WithoutCancel(ctx), "/api/v1/namespaces/"+namespace) }()
	dir, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kube, err := p.pid("devcluster")
	if err != nil {
		return err
	}
	ours, err := copyStored(ctx, p, c, "cluster", dir, namespace, map[string]string{"--storage": "cluster", "--etcd-data-dir": ""}, kube)
	if err != nil {
		return err
	}
	defer ours.stop()
	if s.dir != "" {
		defer ours.empty(context.WithoutCancel(ctx))
	}
	embedded, err := copyStored(ctx, p, c, "embedded etcd", dir, namespace, map[string]string{"--etcd-data-dir": filepath.Join(dir, "embedded")})
	if err != nil {
		return err
	}
	defer embedded.stop()
	etcd, err := copyWithEtcd(ctx, s, p, c, dir, namespace)
	if err != nil {
		return err
	}
	defer etcd.stop()
	for _, workers := range []int{1, 16} {
		if err := compareStored(ctx, s, t, workers, "creation", ours, []against{{etcd, 3}, {embedded, 0}}, func(of *stored) func(context.Context) error { return of.create }); err != nil {
			return err
		}
	}
	// Nothing but creations differs by where the etcd is.
	etcd.stop()
	if err := compareStored(ctx, s, t, 32, "token request", ours, []against{{embedded, 1.1}}, (*stored).token); err != nil {
		return err
	}
	for _, of := range []*stored{ours, embedded} {
		if err := many(ctx, storedIdentities-int(of.created.Load()), createWorkers, func(ctx context.Context, _ int) error { return of.create(ctx) }); err != nil {
			return err
		}
	}
	for _, measured := range []struct {
		what string
		of   func(*stored) func(context.Context) error
	}{
		{"consistent list of one namespace with all identities, in pages of 500", func(of *stored) func(context.Context) error { return of.list }},
		{"list from the watch cache", func(of *stored) func(context.Context) error { return of.cached }},
		{"watch from the watch cache, until all have come", func(of *stored) func(context.Context) error { return of.watch }},
	} {
		if err := compareStored(ctx, s, t, 1, measured.what, ours, []against{{embedded, 0}}, measured.of); err != nil {
			return err
		}
	}
	first, err := residentMB(ours.pid)
	if err != nil {
		return err
	}
	second, err := residentMB(embedded.pid)
	if err != nil {
		return err
	}
	t.add(row{what: fmt.Sprintf("storage, %d identities: memory of the aggregated server", storedIdentities), unit: "MB", ours: first, peer: embedded.name, theirs: second, target: atMost(1.1)})
	return nil
}

// compareStored adds rows of one kind of request.
func compareStored(ctx context.Context, s settings, t *table, workers int, what string, ours *stored, peers []against, of func(*stored) func(context.Context) error) error {
	measured := func(each *stored) subject {
		return subject{name: each.name, once: of(each), pids: []int{each.pid}, aside: each.aside}
	}
	subjects := []subject{measured(ours)}
	for _, peer := range peers {
		subjects = append(subjects, measured(peer.stored))
	}
	results, err := rounds(ctx, s, workers, subjects)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	name, first := fmt.Sprintf("storage, %d at a time: %s: ", workers, what), results[ours.name]
	for _, peer := range peers {
		second := results[peer.name]
		took := row{what: name + "time for one", unit: "ms", ours: 1000 * float64(workers) / first.perSecond, peer: peer.name, theirs: 1000 * float64(workers) / second.perSecond}
		if peer.limit > 0 {
			took.target = atMost(peer.limit)
		}
		t.add(took)
		t.add(row{what: name + "CPU of the aggregated server", unit: "µs", ours: micro(first.cpu), peer: peer.name, theirs: micro(second.cpu)})
		t.add(row{what: name + "CPU of that and of the storage", unit: "µs", ours: micro(first.cpu + first.aside), peer: peer.name, theirs: micro(second.cpu + second.aside)})
	}
	return nil
}

// copyWithEtcd is copyStored with an etcd of one member, which runs by itself and has TLS.
func copyWithEtcd(ctx context.Context, s settings, p plane, c *client, dir, namespace string) (*stored, error) {
	first, err := testkit.FreePorts(2)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "member")
	url, members := fmt.Sprintf("https://127.0.0.1:%d", first), fmt.Sprintf("http://127.0.0.1:%d", first+1)
	member, err := start(exec.CommandContext(ctx, filepath.Join(s.bin, "etcd"), "--data-dir", data, "--auto-tls", "--log-level", "fatal", "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", members, "--initial-advertise-peer-urls", members, "--initial-cluster", "default="+members))
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	// It makes the certificate before it listens.
	ca := filepath.Join(data, "fixtures", "client", "cert.pem")
	if err := until(ctx, "etcd has a certificate", time.Minute, 100*time.Millisecond, func(context.Context) (bool, error) {
		_, err := os.Stat(ca)
		return err == nil, err
	}); err != nil {
		member.stop()
		return nil, err
	}
	of, err := copyStored(ctx, p, c, "etcd", dir, namespace, map[string]string{"--etcd-servers": url, "--etcd-cafile": ca, "--etcd-data-dir": ""}, member.pid)
	if err != nil {
		member.stop()
		return nil, err
	}
	server := of.stop
	of.stop = sync.OnceFunc(func() {
		server()
		member.stop()
	})
	return of, nil
}

// copyStored starts the plane's API server once more, and waits until it issues tokens.
func copyStored(ctx context.Context, p plane, c *client, name, dir, namespace string, storage map[string]string, aside ...int) (*stored, error) {
	dir = filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
	port, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	changed := map[string]string{"--secure-port": port, "--keys-dir": filepath.Join(dir, "keys"), "--publish-configmap": "", "--publish-dir": filepath.Join(dir, "public"), "--audit-log-path": filepath.Join(dir, "audit.log")}
	for name, value := range storage {
		changed[name] = value
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	start := func(ctx context.Context) (copied, error) { return startCopy(ctx, p, "apiserver", changed) }
	running, err := start(ctx)
	if err != nil {
		return nil, err
	}
	of := &stored{name: name, aside: aside, client: &client{http: c.http, aggregated: "https://127.0.0.1:" + port}, copied: running, again: start}
	of.path = of.aggregated + fmt.Sprintf(identityPath, namespace)
	if err := until(ctx, "a second API server issues tokens", time.Minute, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		if of.created.Load() == 0 {
			if err := of.create(ctx); err != nil {
				return false, err
			}
		}
		return true, of.token()(ctx)
	}); err != nil {
		of.stop()
		return nil, err
	}
	return of, nil
}

func (of *stored) create(ctx context.Context) error {
	identity := object("authentication.gardener.cloud/v1alpha1", "WorkloadIdentity", "bench", map[string]any{"audiences": []string{"bench"}, "targetSystem": map[string]any{"type": "generic"}})
	if of.created.Load() > 0 {
		identity["metadata"] = map[string]any{"generateName": "bench-"}
	}
	body, err := json.Marshal(identity)
	if err != nil {
		return err
	}
	if _, err := of.post(ctx, of.path, body); err != nil {
		return err
	}
	of.created.Add(1)
	return nil
}

func (of *stored) token() func(context.Context) error {
	return of.tokens(of.path+"/bench/token", ourRequest)
}

// get reads a list, and returns how many it has and where it goes on.
func (of *stored) get(ctx context.Context, query string) (count int, next string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.path+query, nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", "application/json")
	body, err := send(of.http, request, http.StatusOK)
	if err != nil {
		return 0, "", err
	}
	var list struct {
		Metadata struct{ Continue string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return 0, "", err
	}
	return len(list.Items), list.Metadata.Continue, nil
}

func (of *stored) list(ctx context.Context) error {
	count := 0
	for next, more := "", true; more; more = next != "" {
		page, after, err := of.get(ctx, fmt.Sprintf("?limit=%d&continue=%s", pageOf, next))
		if err != nil {
			return err
		}
		count, next = count+page, after
	}
	return of.all(count)
}

func (of *stored) cached(ctx context.Context) error {
	count, _, err := of.get(ctx, "?resourceVersion=0")
	return errors.Join(err, of.all(count))
}

func (of *stored) all(count int) error {
	if want := int(of.created.Load()); count != want {
		return fmt.Errorf("%d identities were read of %d", count, want)
	}
	return nil
}

func (of *stored) watch(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.path+"?watch=1&resourceVersion=0", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := of.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	count := 0
	for count < int(of.created.Load()) && lines.Scan() {
		count++
	}
	return errors.Join(lines.Err(), of.all(count))
}

// empty removes what was stored: the records outlive their server.
func (of *stored) empty(ctx context.Context) {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, of.path, nil)
	if err != nil {
		return
	}
	_, _ = send(&http.Client{Transport: of.http.Transport, Timeout: 5 * time.Minute}, request, http.StatusOK)
}
