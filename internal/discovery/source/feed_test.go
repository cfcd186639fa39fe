package source

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFeedPassesOnNewsAlone(t *testing.T) {
	type counts struct{ loads, refusals, unreadable int }
	published := newPublished()
	feed := &feed{publisher: published, log: silent()}
	good, other := newDocuments(t), newDocuments(t)
	offer := func(jwks []byte) func() bool { return func() bool { return feed.offer(good.Configuration(), jwks) } }
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
