package source

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
)

func TestFeedPassesOnNewsAlone(t *testing.T) {
	type counts struct{ loads, refusals, unreadable int }
	published := newPublished()
	feed := &feed{publisher: published, log: silent()}
	good, other := newDocuments(t), newDocuments(t)
	offer := func(jwks []byte) func() bool {
		return func() bool { return feed.offer(found{configuration: good.Configuration(), jwks: jwks}) }
	}
	fail := func(cause string) func() bool {
		return func() bool { feed.fail(cause, errors.New(cause)); return !feed.failing() }
	}
	for _, step := range []struct {
		what string
		do   func() bool
		ok   bool
		want counts
	}{
		{"good documents", offer(good.JWKS()), true, counts{1, 0, 0}},
		{"the same again", offer(good.JWKS()), true, counts{1, 0, 0}},
		{"bad ones", offer([]byte("{}")), false, counts{2, 1, 0}},
		{"the same bad ones again", offer([]byte("{}")), false, counts{2, 1, 0}},
		{"other good ones", offer(other.JWKS()), true, counts{3, 1, 0}},
		{"a failure", fail("gone"), false, counts{3, 1, 1}},
		{"the same failure again", fail("gone"), false, counts{3, 1, 1}},
		{"another failure", fail("forbidden"), false, counts{3, 1, 2}},
		{"the same documents after a failure", offer(other.JWKS()), true, counts{4, 1, 2}},
		{"the first failure again", fail("gone"), false, counts{4, 1, 3}},
	} {
		if ok := step.do(); ok != step.ok {
			t.Errorf("%s: got %v", step.what, ok)
		}
		var got counts
		got.loads, got.refusals, got.unreadable = published.counts()
		if diff := cmp.Diff(step.want, got, cmp.AllowUnexported(counts{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

func TestFeedTellsWhenDocumentsChange(t *testing.T) {
	const later = "2026-03-01T12:00:00Z"
	good := newDocuments(t)
	offer := func(f *feed, jwks []byte, next string) {
		f.offer(found{configuration: good.Configuration(), jwks: jwks, nextChange: next})
	}
	for name, c := range map[string]struct {
		do   func(f *feed)
		want time.Time
	}{
		"not known":          {func(f *feed) { offer(f, good.JWKS(), "") }, time.Time{}},
		"known":              {func(f *feed) { offer(f, good.JWKS(), later) }, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		"known by now":       {func(f *feed) { offer(f, good.JWKS(), ""); offer(f, good.JWKS(), later) }, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		"not to be read":     {func(f *feed) { offer(f, good.JWKS(), "soon") }, anyMoment()},
		"newer ones refused": {func(f *feed) { offer(f, good.JWKS(), later); offer(f, []byte("{}"), later) }, anyMoment()},
		"source gone":        {func(f *feed) { offer(f, good.JWKS(), later); f.fail("gone", errors.New("gone")) }, anyMoment()},
		"source back": {func(f *feed) {
			f.fail("gone", errors.New("gone"))
			offer(f, good.JWKS(), later)
		}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			published := newPublished()
			c.do(&feed{publisher: published, log: silent()})
			if !published.expected.Equal(c.want) {
				t.Errorf("the next change is expected at %s, want %s", published.expected, c.want)
			}
		})
	}
}

// Revoked keys are not served again, whatever is put back.
func TestRevokedKeysAreNotServedAgain(t *testing.T) {
	folder := t.TempDir()
	kept, stolen := newPublicKey(t), newPublicKey(t)
	before, after := documentsOf(t, kept, stolen), documentsOf(t, kept)
	id, err := identity.KeyIDOf(stolen)
	must(t, err)
	list := discovery.EncodeRevoked([]discovery.Revoked{{ID: id, Algorithm: identity.ES256, At: time.Unix(1_700_000_000, 0).UTC()}})
	must(t, documentsCache{folder: folder}.saveRevoked(list))

	// In one process, and in the next one, which has the list of the cache alone.
	for name, first := range map[string]found{
		"the list of the documents": {configuration: after.Configuration(), jwks: after.JWKS(), revoked: list},
		"the list of the cache":     {configuration: after.Configuration(), jwks: after.JWKS()},
	} {
		handler := discovery.NewHandler(discovery.Settings{Issuer: testIssuer})
		feed := &feed{publisher: handler, log: silent()}
		if first.revoked == "" {
			feed.recall(documentsCache{folder: folder}.revoked())
		}
		if !feed.offer(first) {
			t.Fatalf("%s: good documents are refused", name)
		}
		if feed.offer(found{configuration: before.Configuration(), jwks: before.JWKS()}) {
			t.Errorf("%s: documents with a revoked key are served", name)
		}
		if feed.remembered() != list {
			t.Errorf("%s: remembered are %s", name, feed.remembered())
		}
		if !feed.offer(first) {
			t.Errorf("%s: good documents are refused after bad ones", name)
		}
	}
}
