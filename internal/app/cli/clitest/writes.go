package clitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// place is where an object is in the API.
type place struct{ group, namespace, resource, name string }

func (p place) holds(o fakeObject) bool {
	return o.APIVersion == p.group && fakeResource(o.Kind) == p.resource && o.Metadata.Namespace == p.namespace && o.Metadata.Name == p.name
}

// write keeps an object that a request creates, replaces or patches, until the file has other objects. A dry run keeps nothing.
func (f *objectsFake) write(w http.ResponseWriter, r *http.Request, at place) {
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch"}[r.Method]
	if f.denied(w, r, at.group, verb, at.resource, at.namespace) {
		return
	}
	var body map[string]any
	decode(r, &body)
	sent := objectOf(body)
	if r.Method == http.MethodPost {
		at.name = sent.Metadata.Name
	}
	objects := slices.Clone(f.objects())
	i := slices.IndexFunc(objects, at.holds)
	switch {
	case r.Method == http.MethodPost && i >= 0:
		Refuse(w, metav1.Status{
			Code: 409, Reason: "AlreadyExists", Details: &metav1.StatusDetails{Kind: at.resource, Name: at.name},
			Message: fmt.Sprintf("%s %q already exists", at.resource, at.name),
		})
		return
	case r.Method == http.MethodPost:
		if sent.Kind == "WorkloadIdentity" {
			sent.whole["status"] = map[string]any{"issuer": "https://issuer.example.com", "sub": "gardener.cloud:workloadidentity:" + at.namespace + ":" + at.name + ":uid"}
		}
		objects, i = append(objects, sent), len(objects)
	case i < 0:
		f.get(w, r, at.group, at.namespace, at.resource, at.name)
		return
	case r.Method == http.MethodPut:
		objects[i] = sent
	default:
		objects[i] = objectOf(merge(objects[i].whole, body))
	}
	written := objects[i].whole
	if !dryRun(r) {
		f.renewTokens(objects, objects[i])
		f.keep(objects)
	}
	Answer(w, map[bool]int{true: http.StatusCreated, false: http.StatusOK}[r.Method == http.MethodPost], written)
}

func (f *objectsFake) keep(objects []fakeObject) {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.read = objects
}

// renewTokens changes the tokens in Secrets that an object's annotation requests, as the agent does. It is never done with a Secret named slow.
func (f *objectsFake) renewTokens(objects []fakeObject, of fakeObject) {
	metadata := of.whole["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations[v1alpha1.AnnotationOperation] != v1alpha1.OperationRenewToken {
		return
	}
	for i, o := range objects {
		if o.Kind != "Secret" || o.Metadata.Name == "slow" {
			continue
		}
		owned := false
		owners, _ := o.whole["metadata"].(map[string]any)["ownerReferences"].([]any)
		for _, owner := range owners {
			owned = owned || owner.(map[string]any)["uid"] == metadata["uid"]
		}
		itself := of.Kind == "Secret" && o.Metadata.Namespace == of.Metadata.Namespace && o.Metadata.Name == of.Metadata.Name
		if owned || itself {
			token := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "token %d", f.renewed.Add(1)))
			objects[i] = objectOf(merge(o.whole, map[string]any{"data": map[string]any{v1alpha1.SecretToken: token}}))
		}
	}
}

// merge returns an object with a merge patch.
func merge(object, patch map[string]any) map[string]any {
	merged, err := jsonpatch.MergePatch(encode(object), encode(patch))
	if err != nil {
		panic(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(merged, &whole); err != nil {
		panic(err)
	}
	return whole
}

func objectOf(whole map[string]any) fakeObject {
	object := fakeObject{whole: whole}
	if err := json.Unmarshal(encode(whole), &object); err != nil {
		panic(err)
	}
	return object
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// serveGroups answers what the server has: the groups of the documents of kind APIResourceList.
func (f *objectsFake) serveGroups(w http.ResponseWriter, root string) {
	if root == "api" {
		Answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, o := range f.objects() {
		if group, version, ok := strings.Cut(o.Metadata.Name, "/"); ok && o.Kind == "APIResourceList" {
			served := metav1.GroupVersionForDiscovery{GroupVersion: o.Metadata.Name, Version: version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served})
		}
	}
	Answer(w, http.StatusOK, groups)
}
