package main

import (
	"context"
	"fmt"
	"time"
)

// gmsaConcurrencies are how many reviews are sent at a time.
var gmsaConcurrencies = []int{1, 32}

const (
	// countedReviews are those after which it is counted what filling in has asked for.
	countedReviews = 1000
	// reviewWindow is how long the webhook believes that an account may use a spec.
	reviewWindow = 10 * time.Second
	// auditDelay is how long an event may take to get into the audit log.
	auditDelay = 200 * time.Millisecond
)

// measureGMSA sends reviews of gMSA pods to our webhook, and to one that decodes the same and admits them, straight over TLS.
func measureGMSA(ctx context.Context, s settings, p plane, t *table) error {
	w, err := newGMSAWorld(ctx, p)
	if err != nil {
		return err
	}
	defer w.remove()
	reviews, err := w.reviews(ctx)
	if err != nil {
		return err
	}
	subjects := []subject{
		{name: "ours" + mutatePath, once: w.ask(w.oursURL, mutatePath, reviews[mutatePath], true), pids: []int{w.ours}},
		{name: "noop" + mutatePath, once: w.ask(w.noopURL, mutatePath, reviews[mutatePath], false), pids: []int{w.noop}},
		{name: "ours" + validatePath, once: w.ask(w.oursURL, validatePath, reviews[validatePath], false), pids: []int{w.ours}},
		{name: "noop" + validatePath, once: w.ask(w.noopURL, validatePath, reviews[validatePath], false), pids: []int{w.noop}},
	}
	if err := w.countFillingIn(ctx, subjects[0], t); err != nil {
		return err
	}
	if err := w.countReferences(ctx, t); err != nil {
		return err
	}
	s.rounds = max(2, s.rounds/2) // CPU per review needs no more
	for _, workers := range gmsaConcurrencies {
		if _, err := w.asked(ctx); err != nil {
			return err
		}
		begin := time.Now()
		results, err := rounds(ctx, s, workers, subjects)
		if err != nil {
			return err
		}
		windows := windowsSince(begin)
		counted, err := w.asked(ctx)
		if err != nil {
			return err
		}
		reviewRows(t, workers, results)
		what := fmt.Sprintf("gMSA validate, %d at a time: ", workers)
		t.add(accessReviews(what, counted, windows))
		t.add(row{what: what + "other API calls, those of mutate with them", ours: float64(counted.others), peer: "one per review", theirs: float64(results["ours"+mutatePath].operations + results["ours"+validatePath].operations), target: atMost(0)})
	}
	return nil
}

// windowsSince returns in how many windows a right can have been reviewed.
func windowsSince(begin time.Time) int { return int(time.Since(begin)/reviewWindow) + 1 }

func accessReviews(what string, counted calls, windows int) row {
	return row{
		what: what + fmt.Sprintf("access reviews in %d windows of 10 s", windows), ours: float64(counted.reviews),
		peer: "one per account, object and window", theirs: float64(pairs * windows), target: atMost(1),
	}
}

// reviewLimit is the CPU that a review may take.
const reviewLimit = 200 * time.Microsecond

func reviewRows(t *table, workers int, results map[string]result) {
	const peer = "webhook that does nothing"
	for _, path := range []string{mutatePath, validatePath} {
		ours, noop := results["ours"+path], results["noop"+path]
		what := fmt.Sprintf("gMSA %s, %d at a time: ", path[1:], workers)
		t.add(row{what: what + "CPU per review", unit: "µs", ours: micro(ours.cpu), peer: peer, theirs: micro(noop.cpu), target: atMost(1.5)})
		t.add(row{what: what + "CPU per review", unit: "µs", ours: micro(ours.cpu), peer: "limit", theirs: micro(reviewLimit), target: atMost(1)})
		t.add(row{what: what + "reviews per second", ours: ours.perSecond, peer: peer, theirs: noop.perSecond})
		t.add(row{what: what + "p99", unit: "ms", ours: ours.p99.Seconds() * 1e3, peer: peer, theirs: noop.p99.Seconds() * 1e3})
	}
}

// asked is what the webhook has asked kube-apiserver since it was called last.
func (w *gmsaWorld) asked(ctx context.Context) (calls, error) {
	if err := pause(ctx, auditDelay); err != nil {
		return calls{}, err
	}
	return w.audit.since()
}

func (w *gmsaWorld) countFillingIn(ctx context.Context, mutate subject, t *table) error {
	if _, err := w.asked(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if err := many(ctx, countedReviews, 32, func(ctx context.Context, _ int) error { return mutate.once(ctx) }); err != nil {
		return err
	}
	windows := windowsSince(begin)
	counted, err := w.asked(ctx)
	what := fmt.Sprintf("gMSA mutate, %d reviews: ", countedReviews)
	t.add(accessReviews(what, counted, windows))
	t.add(row{what: what + "other API calls", ours: float64(counted.others), peer: "one per review", theirs: countedReviews, target: atMost(0)})
	return err
}

// countReferences creates a pod with very many references, of a service account that was never asked about.
func (w *gmsaWorld) countReferences(ctx context.Context, t *table) error {
	if _, err := w.asked(ctx); err != nil {
		return err
	}
	if err := w.createPod(ctx, w.podsURL("?dryRun=All"), w.manyReferences(), referencesOfPod); err != nil {
		return err
	}
	counted, err := w.asked(ctx)
	what := fmt.Sprintf("gMSA pod with %d references to %d objects: ", referencesOfPod, gmsaSpecs)
	t.add(row{what: what + "access reviews", ours: float64(counted.reviews), peer: "one per object", theirs: gmsaSpecs, target: atMost(1)})
	t.add(row{what: what + "other API calls", ours: float64(counted.others), peer: "one per object", theirs: gmsaSpecs, target: atMost(0)})
	return err
}
