package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// counters are what a token must not cost each time: an access review, a read or a write of the storage.
type counters struct{ reviews, reads, writes float64 }

func (c *client) counters(ctx context.Context) (counters, error) {
	cluster, err := c.metrics(ctx, c.cluster)
	if err != nil {
		return counters{}, err
	}
	ours, err := c.metrics(ctx, c.aggregated)
	if err != nil {
		return counters{}, err
	}
	const stored = `resource="workloadidentities"`
	all := counters{reviews: sum(cluster, "apiserver_request_total", `resource="subjectaccessreviews"`)}
	all.reads = sum(ours, "etcd_requests_total", stored, `operation="get"`)
	for _, write := range []string{"create", "update", "delete"} {
		all.writes += sum(ours, "etcd_requests_total", stored, `operation="`+write+`"`)
	}
	return all, nil
}

func (c *client) metrics(ctx context.Context, server string) ([]byte, error) {
	return get(ctx, c.http, server+"/metrics")
}

// sum adds up the series of a metric, in Prometheus' text format, that have all of the labels.
func sum(metrics []byte, name string, labels ...string) float64 {
	total := 0.0
series:
	for line := range bytes.Lines(metrics) {
		text := strings.TrimSpace(string(line))
		series, value, ok := strings.Cut(text, "} ")
		if !ok {
			series, value, ok = strings.Cut(text, " ") // it has no labels
		}
		if !ok || series != name && !strings.HasPrefix(series, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(series, label) {
				continue series
			}
		}
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			total += number
		}
	}
	return total
}

// counterRows shows how often each was needed for a thousand tokens of ours, beside a server that needs one for each.
func counterRows(t *table, workers int, before, after counters, tokens int) {
	for _, counter := range []struct {
		what  string
		count float64
	}{
		{"access reviews", after.reviews - before.reviews},
		{"reads of the storage", after.reads - before.reads},
		{"writes of the storage", after.writes - before.writes},
	} {
		t.add(row{
			what: fmt.Sprintf("ours, %d at a time: %s per 1000 tokens", workers, counter.what),
			ours: counter.count * 1000 / float64(tokens), peer: "one per token", theirs: 1000,
		})
	}
}
