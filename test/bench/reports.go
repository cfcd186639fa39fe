package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"
)

const (
	reportIdentity = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"i%05d"},"spec":{"audiences":["bench"],"targetSystem":{"type":"generic"}}}`
	reportBody     = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"DeliveryReport","spec":{"secrets":1,"delivered":1,"expires":%q}}`
	reportPeer     = `{"metadata":{"name":"i%05d"},"data":{"report":"none"}}`
)

// measureReports measures the status of many identities: the first report of each, beside as many ConfigMaps that are patched; the
// same report again, which writes nothing; and a list of all, beside one of the ConfigMaps.
func measureReports(ctx context.Context, s settings, p plane, t *table) error {
	w, remove, err := newWorld(ctx, p, nil)
	if err != nil {
		return err
	}
	defer remove()
	pids, err := w.clocks()
	if err != nil {
		return err
	}
	delete(pids, "webhook")
	identities := fmt.Sprintf(identityPath, w.namespace)
	peers := "/api/v1/namespaces/" + w.namespace + "/configmaps"
	fmt.Fprintf(os.Stderr, "bench: %d identities and as many ConfigMaps are made\n", s.secrets)
	if err := many(ctx, s.secrets, createWorkers, func(ctx context.Context, i int) error {
		if _, err := w.post(ctx, w.cluster+identities, fmt.Appendf(nil, reportIdentity, i)); err != nil {
			return err
		}
		_, err := w.post(ctx, w.cluster+peers, fmt.Appendf(nil, reportPeer, i))
		return err
	}); err != nil {
		return fmt.Errorf("create identities: %w", err)
	}
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	report := func(ctx context.Context, i int) error {
		_, err := w.post(ctx, fmt.Sprintf("%s%s/i%05d/delivery", w.cluster, identities, i), fmt.Appendf(nil, reportBody, expires))
		return err
	}
	patch := func(ctx context.Context, i int) error {
		return w.patch(ctx, fmt.Sprintf("%s/i%05d", peers, i), fmt.Sprintf(`{"data":{"report":"1 of 1 until %s"}}`, expires))
	}
	spans := map[string]span{}
	for _, phase := range []struct {
		name string
		do   func(context.Context, int) error
	}{{"patch", patch}, {"first", report}, {"again", report}} {
		spans[phase.name], err = watched(maps.Clone(pids), func() (int, error) { return s.secrets, many(ctx, s.secrets, fillWorkers, phase.do) })
		if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	reportRows(t, s.secrets, spans)
	return w.listRows(ctx, t, s.secrets, pids, identities, peers)
}

func reportRows(t *table, count int, spans map[string]span) {
	for _, kind := range []struct{ what, name string }{{"first report", "first"}, {"same report again", "again"}} {
		what := fmt.Sprintf("delivery of %d identities, %s: ", count, kind.what)
		ours, peer := spans[kind.name], spans["patch"]
		t.add(row{what: what + "per second", ours: ours.perSecond(), peer: "ConfigMaps, patched", theirs: peer.perSecond()})
		t.add(row{what: what + "CPU", unit: "µs", ours: ours.cpuPerAll(), peer: "ConfigMap, patched", theirs: peer.cpuPerAll()})
	}
}

// listRows shows what a list of all identities takes, as `kubectl get` without pages requests it.
func (w *world) listRows(ctx context.Context, t *table, count int, pids map[string]int, identities, peers string) error {
	list := func(path string) (span, error) {
		return watched(maps.Clone(pids), func() (int, error) {
			_, err := get(ctx, w.http, w.cluster+path)
			return count, err
		})
	}
	theirs, err := list(peers)
	if err != nil {
		return err
	}
	ours, err := list(identities)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("list of %d identities with reports: ", count)
	t.add(row{what: what + "seconds", unit: "s", ours: ours.took.Seconds(), peer: "list of ConfigMaps", theirs: theirs.took.Seconds()})
	t.add(row{what: what + "CPU per object", unit: "µs", ours: ours.cpuPerAll(), peer: "list of ConfigMaps", theirs: theirs.cpuPerAll()})
	return nil
}
