package alerts

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// step is the time between two scrapes, and between two evaluations.
const step = time.Minute

// scraped are series that begin at the time zero, with a sample for each step.
type scraped struct {
	series []storage.Series
	steps  int
}

// scrape reads series in the notation of promtool: a value for each step, 0+60x5 for 0 60 … 300, _ for none.
func scrape(t *testing.T, notations []string) scraped {
	t.Helper()
	var s scraped
	for _, notation := range notations {
		metric, sequence, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(notation)
		if err != nil {
			t.Fatalf("series %s: %v", notation, err)
		}
		series := promql.Series{Metric: metric}
		for i, value := range sequence {
			if !value.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: (time.Duration(i) * step).Milliseconds(), F: value.Value})
			}
		}
		s.series = append(s.series, promql.NewStorageSeries(series))
		s.steps = max(s.steps, len(sequence))
	}
	return s
}

// Querier implements storage.Queryable.
func (s scraped) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &seriesSet{}
		for _, series := range s.series {
			if matches(series.Labels(), matchers) {
				set.rest = append(set.rest, series)
			}
		}
		return set
	}}, nil
}

func matches(metric labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(metric.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

type seriesSet struct {
	at   storage.Series
	rest []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series              { return s.at }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

// firing is an alert that fires.
type firing struct {
	since  time.Duration
	sample promql.Sample
}

// firings evaluates a rule at every step, and returns when it fires first, by the labels of the alert.
func (s scraped) firings(t *testing.T, rule rulefmt.Rule) map[string]firing {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	pending, fired := map[string]time.Duration{}, map[string]firing{}
	for i := range s.steps {
		now := time.Duration(i) * step
		held := map[string]time.Duration{}
		for _, sample := range s.query(t.Context(), t, engine, rule.Expr, now) {
			alert := alertLabels(sample.Metric)
			since, ok := pending[alert]
			if !ok {
				since = now
			}
			held[alert] = since
			if _, ok := fired[alert]; !ok && now-since >= time.Duration(rule.For) {
				fired[alert] = firing{since: now, sample: sample}
			}
		}
		// A series that is not in the result any more has to wait anew.
		pending = held
	}
	return fired
}

func (s scraped) query(ctx context.Context, t *testing.T, engine *promql.Engine, expr string, now time.Duration) promql.Vector {
	t.Helper()
	query, err := engine.NewInstantQuery(ctx, s, nil, expr, time.UnixMilli(now.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result := query.Exec(ctx)
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("evaluate %s at %s: %v", expr, now, err)
	}
	for _, warning := range result.Warnings.AsErrors() {
		t.Errorf("evaluate %s at %s: %v", expr, now, warning)
	}
	return append(promql.Vector{}, vector...)
}
