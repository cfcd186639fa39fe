package issuer

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func withObjects(objects ...Object) Request {
	r := testRequest()
	r.Context = &Context{Objects: objects}
	return r
}

var (
	shoot   = Object{Claim: "shoot", Namespace: "garden-local", Name: "foo", UID: "54d09554-6a68-4f46-a23a-e3592385d820"}
	project = Object{Claim: "project", Name: "local", UID: "a-uid"}
)

// All claims of a token without a context are there, and beside the identity those of objects.
func TestClaimsOfObjects(t *testing.T) {
	payload := func(request Request) map[string]any {
		_, token := mustIssue(t, newIssuer(t, testConfig()), request)
		_, text, _ := parts(t, token)
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "jti")
		return got
	}
	plain, inContext := testRequest(), withObjects(shoot, project)
	plain.Cluster = &Cluster{Name: "east", UID: "uid-of-east"}
	inContext.Cluster = plain.Cluster
	want := payload(plain)
	members := want["gardener.cloud"].(map[string]any)
	members["shoot"] = map[string]any{"name": "foo", "namespace": "garden-local", "uid": shoot.UID}
	members["project"] = map[string]any{"name": "local", "uid": "a-uid"}
	if diff := cmp.Diff(want, payload(inContext)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// A claim that would replace another, or names nothing, is not prepared.
func TestObjectsThatAreRefused(t *testing.T) {
	changed := func(change func(*Object)) Request {
		object := shoot
		change(&object)
		return withObjects(object)
	}
	both := withObjects(shoot)
	both.Context.ServiceAccount = withServiceAccount(testRequest()).Context.ServiceAccount
	for name, request := range map[string]Request{
		"the identity's claim": changed(func(o *Object) { o.Claim = "workloadIdentity" }),
		"the garden's claim":   changed(func(o *Object) { o.Claim = "garden" }),
		"the cluster's claim":  changed(func(o *Object) { o.Claim = "seed" }),
		"no claim":             changed(func(o *Object) { o.Claim = "" }),
		"no name":              changed(func(o *Object) { o.Name = "" }),
		"no uid":               changed(func(o *Object) { o.UID = "" }),
		"a name with a space":  changed(func(o *Object) { o.Name = "a b" }),
		"a namespace":          changed(func(o *Object) { o.Namespace = "ä" }),
		"one claim twice":      withObjects(shoot, shoot),
		"an account, too":      both,
	} {
		if _, err := newIssuer(t, testConfig()).Prepare(request); err == nil {
			t.Errorf("%s: prepared", name)
		}
	}
}
