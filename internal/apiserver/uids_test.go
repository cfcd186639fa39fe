package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"github.com/credence-id/credence/test/testkit"
)

const applied = "application/apply-patch+yaml"

func asked(verb string) *request.RequestInfo {
	return &request.RequestInfo{IsResourceRequest: true, Verb: verb, Resource: "workloadidentities"}
}

func TestTakeUID(t *testing.T) {
	const given, spec = `{"metadata":{"name":"a","uid":"u"}`, `,"spec":{"x":[12345678901234567,"<é>",1.0]}}`
	token := asked("create")
	token.Subresource = "token"
	for name, test := range map[string]struct {
		info              *request.RequestInfo
		contentType, body string
		want              workloadidentity.GivenUID
		rest              string // "": the body as it is
	}{
		"created":             {info: asked("create"), body: given + spec, want: workloadidentity.GivenUID{UID: "u"}},
		"created, YAML":       {info: asked("create"), body: "metadata: {name: a, uid: u}", want: workloadidentity.GivenUID{UID: "u"}},
		"without a name":      {info: asked("create"), body: `{"metadata":{"generateName":"a-","uid":"u"}}`, want: workloadidentity.GivenUID{UID: "u", Unnamed: true}},
		"applied":             {info: asked("patch"), contentType: applied, body: given + spec, want: workloadidentity.GivenUID{UID: "u", Applied: true}, rest: `{"metadata":{"name":"a"}` + spec},
		"applied, YAML":       {info: asked("patch"), contentType: applied + "; charset=utf-8", body: "metadata:\n  uid: u # set\n  name: a\n", want: workloadidentity.GivenUID{UID: "u", Applied: true}, rest: `{"metadata":{"name":"a"}}`},
		"a merge patch":       {info: asked("patch"), contentType: "application/merge-patch+json", body: given + spec},
		"an update":           {info: asked("update"), body: given + spec},
		"a token":             {info: token, body: given + spec},
		"no uid":              {info: asked("create"), body: `{"metadata":{"name":"uid"}}`},
		"empty":               {info: asked("create"), body: `{"metadata":{"uid":""}}`},
		"not a text":          {info: asked("create"), body: `{"metadata":{"uid":5}}`},
		"another case":        {info: asked("create"), body: `{"metadata":{"UID":"uid"}}`},
		"of an owner":         {info: asked("create"), body: `{"metadata":{"ownerReferences":[{"uid":"u"}]}}`},
		"not an object":       {info: asked("create"), body: `["uid"]`},
		"a key twice":         {info: asked("patch"), contentType: applied, body: `{"metadata":{"uid":"u","uid":"v"}}`},
		"metadata not a map":  {info: asked("create"), body: `{"metadata":"uid"}`},
		"applied without uid": {info: asked("patch"), contentType: applied, body: `{"metadata":{"name":"uid"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, rest := takeUID(test.info, test.contentType, []byte(test.body))
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			if test.rest == "" {
				if string(rest) != test.body {
					t.Errorf("the body became %s", rest)
				}
				return
			}
			var is, want any
			testkit.Must(t, json.Unmarshal(rest, &is))
			testkit.Must(t, json.Unmarshal([]byte(test.rest), &want))
			if diff := cmp.Diff(want, is); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Of an object that is applied, all that is left is what the API machinery would have read, but for the uid.
func FuzzTakeUID(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"uid":"u","name":"a"},"spec":{"n":1e3,"s":"\u003c\u2028"}}`, "metadata:\n  uid: u\n  name: 'x'\nspec: {n: 0x10, t: 2001-01-01, y: yes}\n", `{"metadata":{"uid":null}}`, "uid",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		given, rest := takeUID(asked("patch"), applied, []byte(body))
		if given.UID == "" {
			if string(rest) != body {
				t.Errorf("without a uid, the body became %s", rest)
			}
			return
		}
		var before, after map[string]any
		testkit.Must(t, yaml.Unmarshal([]byte(body), &before))
		if err := yaml.Unmarshal(rest, &after); err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		metadata := before["metadata"].(map[string]any)
		if metadata["uid"] != string(given.UID) {
			t.Errorf("uid %q, the machinery reads %v", given.UID, metadata["uid"])
		}
		delete(metadata, "uid")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Error(diff)
		}
	})
}

// Errors are followed by longer and longer pauses, and success by one more call, when no server of an earlier version is left.
func TestTakeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var calls []time.Duration
		takeTwice(t.Context(), func(context.Context) error {
			calls = append(calls, time.Since(start))
			if n := len(calls); n < 4 || n == 5 {
				return errors.New("away")
			}
			return nil
		})
		first := 5*time.Second + 10*time.Second + 20*time.Second
		if want := []time.Duration{0, 5 * time.Second, 15 * time.Second, first, first + takeAgain, first + takeAgain + 5*time.Second}; !slices.Equal(calls, want) {
			t.Errorf("called after %v, want %v", calls, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		start = time.Now()
		n, longest, last := 0, time.Duration(0), time.Now()
		takeTwice(ctx, func(context.Context) error {
			n, longest, last = n+1, max(longest, time.Since(last)), time.Now()
			return errors.New("away")
		})
		if time.Since(start) != time.Hour || longest != 5*time.Minute {
			t.Errorf("ended after %s, %d calls, longest pause %s", time.Since(start), n, longest)
		}
	})
}
