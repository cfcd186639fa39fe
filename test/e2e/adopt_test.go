package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const applyPatch = "application/apply-patch+yaml"

// givenJSON is an identity that names its uid.
func givenJSON(name, uid string) string {
	return strings.Replace(identityJSON(name, "generic", "a"), `"metadata":{`, fmt.Sprintf(`"metadata":{"uid":%q,`, uid), 1)
}

// adopter returns a user who may edit identities of a namespace and choose their uids.
func (p plane) adopter(t *testing.T, namespace string) string {
	t.Helper()
	name := "adopter-" + namespace
	p.letEdit(t, namespace, name)
	p.bind(t, namespace, "credence:workloadidentities:adopter", user(name))
	return name
}

const workloadIdentities = "workloadidentities.authentication.gardener.cloud"

// letEdit lets a user edit a namespace, and waits until that is in effect: a request before would be refused for some seconds.
func (p plane) letEdit(t *testing.T, namespace, name string) {
	t.Helper()
	p.bind(t, namespace, "edit", user(name))
	p.untilAllowed(t, namespace, name, "create", workloadIdentities, "")
}

// uidOf decodes an identity and returns its uid, which has to be that of its subject.
func uidOf(t *testing.T, namespace string, got response) string {
	t.Helper()
	wi := &v1alpha1.WorkloadIdentity{}
	if err := json.Unmarshal(got.Body, wi); err != nil || wi.UID == "" {
		t.Fatalf("%d %s: %v", got.Code, got.Body, err)
	}
	if want := "gardener.cloud:workloadidentity:" + namespace + ":" + wi.Name + ":" + string(wi.UID); wi.Status.Sub != want {
		t.Errorf("subject %s, want %s", wi.Status.Sub, want)
	}
	return string(wi.UID)
}

// The sample of the document, applied as it stands, is the identity that it names, however often it is deleted.
func TestSampleIsAdopted(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	adopter := shared.adopter(t, namespace)
	given := string(uuid.NewUUID()) // the document's own can be that of one identity alone
	manifest := strings.ReplaceAll(fmt.Sprintf(sample, namespace), "12b580fe-1f74-4195-852b-e1a74b03496a", given)
	for _, steps := range [][]string{
		{"create"}, {"create --validate=strict"}, {"apply", "apply"}, {"apply --server-side", "apply --server-side"}, {"apply", "apply --server-side --force-conflicts", "apply"},
	} {
		for _, step := range steps {
			if _, stderr, code := shared.command(t, manifest, "kubectl", append(strings.Fields(step), "-f", "-", "--as", adopter)...); code != 0 || strings.Contains(stderr, "metadata.uid") {
				t.Errorf("%s: exit code %d, %s", step, code, stderr)
			}
			if uid := uidOf(t, namespace, do(t, shared.config(t), "GET", identitiesPath(namespace)+"/banana-testing", "", "")); uid != given {
				t.Errorf("%s: uid %s, want %s", step, uid, given)
			}
		}
		shared.must(t, "", "kubectl", "-n", namespace, "delete", "wi", "banana-testing")
	}
}

func TestAdopt(t *testing.T) {
	inTurn(t)
	namespace, elsewhere := shared.namespace(t), shared.namespace(t)
	adopter := shared.as(t, shared.adopter(t, namespace))
	shared.letEdit(t, elsewhere, adopter.Impersonate.UserName)
	plain := shared.as(t, "edit-"+namespace)
	shared.letEdit(t, namespace, "edit-"+namespace)
	path, admin := identitiesPath(namespace), shared.config(t)
	create := func(config *rest.Config, namespace, body string) response {
		return do(t, config, "POST", identitiesPath(namespace), "application/json", body)
	}
	apply := func(config *rest.Config, name, body string) response {
		return do(t, config, "PATCH", path+"/"+name+"?fieldManager=e2e", applyPatch, body)
	}
	want := func(what string, got response, code int, text string) {
		t.Helper()
		expect(t, got.is(code, text), what)
	}
	living := uidOf(t, namespace, create(admin, namespace, identityJSON("living", "generic", "a")))
	gone := uidOf(t, namespace, create(admin, namespace, identityJSON("gone", "generic", "a")))
	want("delete", do(t, admin, "DELETE", path+"/gone", "", ""), http.StatusOK, "")
	fresh := string(uuid.NewUUID())

	t.Run("without the right", func(t *testing.T) {
		for name, attack := range map[string]struct {
			config    *rest.Config
			namespace string
		}{"no": {plain, namespace}, "elsewhere": {adopter, elsewhere}} {
			got := create(attack.config, attack.namespace, givenJSON(name, fresh))
			want(name, got, http.StatusCreated, "")
			if uid := uidOf(t, attack.namespace, got); uid == fresh {
				t.Errorf("%s: a user without the right has chosen the uid", name)
			}
			if warning := got.Header.Get("Warning"); !strings.Contains(warning, "metadata.uid "+fresh+" is not used: only users with the verb adopt") {
				t.Errorf("%s: warning %q", name, warning)
			}
		}
		got := apply(plain, "applied", givenJSON("applied", fresh))
		want("server-side apply", got, http.StatusConflict, "uid mismatch")
		if !strings.Contains(got.Header.Get("Warning"), "the verb adopt") {
			t.Errorf("server-side apply: warning %q", got.Header.Get("Warning"))
		}
		// Of an identity that is there, no right is needed: its uid is a precondition.
		want("server-side apply", apply(plain, "living", givenJSON("living", living)), http.StatusOK, living)
	})
	t.Run("uids of others", func(t *testing.T) {
		for what, uid := range map[string]string{"a living identity": living, "a deleted one": gone} {
			for _, config := range []*rest.Config{adopter, admin} {
				want(what, create(config, namespace, givenJSON("thief", uid)), http.StatusUnprocessableEntity, "metadata.uid: Invalid value")
				want(what, apply(config, "thief", givenJSON("thief", uid)), http.StatusUnprocessableEntity, "is, or was, the uid of another identity")
				want(what+", dry run", do(t, config, "POST", path+"?dryRun=All", "application/json", givenJSON("thief", uid)), http.StatusUnprocessableEntity, "is, or was")
			}
		}
		want("the same name in another namespace", create(admin, elsewhere, givenJSON("gone", gone)), http.StatusUnprocessableEntity, "is, or was")
		want("a namesake that is there", create(adopter, namespace, givenJSON("living", living)), http.StatusConflict, "AlreadyExists")
		want("a namesake with another uid", create(adopter, namespace, givenJSON("living", fresh)), http.StatusConflict, "AlreadyExists")
		want("server-side apply of a namesake", apply(adopter, "living", givenJSON("living", fresh)), http.StatusUnprocessableEntity, "field is immutable")
		want("the thief", do(t, admin, "GET", path+"/thief", "", ""), http.StatusNotFound, "")
	})
	t.Run("its own again", func(t *testing.T) {
		want("create", create(adopter, namespace, givenJSON("gone", gone)), http.StatusCreated, gone)
		want("delete", do(t, admin, "DELETE", path+"/gone", "", ""), http.StatusOK, "")
		want("server-side apply", apply(adopter, "gone", givenJSON("gone", gone)), http.StatusCreated, gone)
	})
	t.Run("what is refused takes no uid", func(t *testing.T) {
		for what, body := range map[string]string{
			"a taken name":  givenJSON("living", fresh),
			"invalid":       strings.Replace(givenJSON("invalid", fresh), `"audiences":["a"]`, `"audiences":[]`, 1),
			"not permitted": givenJSON("no-namespace", fresh),
		} {
			target := namespace
			if what == "not permitted" {
				target = "credence-e2e-none"
			}
			if got := create(admin, target, body); got.Code < 400 {
				t.Errorf("%s: %d %s", what, got.Code, got.Body)
			}
		}
		want("dry run", do(t, adopter, "POST", path+"?dryRun=All", "application/json", givenJSON("dry", fresh)), http.StatusCreated, fresh)
		want("after these", create(adopter, namespace, givenJSON("fresh", fresh)), http.StatusCreated, fresh)
	})
	t.Run("not a uid", func(t *testing.T) {
		for _, uid := range []string{"x", "12B580FE-1F74-4195-852B-E1A74B03496A", "12b580fe1f744195852be1a74b03496a", "{12b580fe-1f74-4195-852b-e1a74b03496a}", "12b580fe-1f74-4195-852b-e1a74b03496a\n", strings.Repeat("a", 5000)} {
			want(uid, create(adopter, namespace, givenJSON("malformed", uid)), http.StatusUnprocessableEntity, "must be a UUID in lower case")
		}
		want("a number", create(adopter, namespace, strings.Replace(givenJSON("malformed", "5"), `"5"`, `5`, 1)), http.StatusBadRequest, "")
		want("empty", create(adopter, namespace, givenJSON("empty", "")), http.StatusCreated, "")
	})
	t.Run("other ways to create", func(t *testing.T) {
		another := string(uuid.NewUUID())
		generated := strings.Replace(givenJSON("x", another), `"name":"x"`, `"generateName":"x-"`, 1)
		want("generateName", create(adopter, namespace, generated), http.StatusUnprocessableEntity, "metadata.name: Required")
		want("generateName without the right", create(plain, namespace, generated), http.StatusCreated, "x-")
		want("PUT", do(t, adopter, "PUT", path+"/put", "application/json", givenJSON("put", another)), http.StatusNotFound, "")
		want("merge patch", do(t, adopter, "PATCH", path+"/put", mergePatch, givenJSON("put", another)), http.StatusNotFound, "")
		want("a change of it", do(t, adopter, "PATCH", path+"/living", mergePatch, fmt.Sprintf(`{"metadata":{"uid":%q}}`, another)), http.StatusUnprocessableEntity, "field is immutable")
		want("uid twice, applied", apply(adopter, "twice", "metadata: {name: twice, uid: "+fresh+", uid: "+another+"}\napiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nspec: {audiences: [a], targetSystem: {type: generic}}\n"), http.StatusConflict, "uid mismatch")
		yaml := "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {name: yaml, uid: " + another + "}\nspec: {audiences: [a], targetSystem: {type: generic}}\n"
		want("YAML", do(t, adopter, "POST", path, "application/yaml", yaml), http.StatusCreated, another)
	})
}

// Of two replicas that are to give one uid to two identities at once, one does. Of one identity, both may.
func TestReplicasGiveAUIDOnce(t *testing.T) {
	inTurn(t)
	shared.giveUIDs(t, shared.replica(t, shared.etcdOf()))
}

// The uids of identities that an earlier version has stored are known before any is taken from a request.
func TestUIDsOfAnEarlierVersion(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	made, old := shared.create(t, namespace, "new", "generic", "a"), string(uuid.NewUUID())
	storage := shared.etcdOf()
	etcd := need(clientv3.New(clientv3.Config{Endpoints: []string{storage["etcd-servers"]}, DialTimeout: time.Minute}))(t)
	defer etcd.Close()
	// The uid of one that was made here is known by its block. This one is stored past the API, and another object with it, which holds up nothing.
	folder := "/registry/authentication.gardener.cloud/authentication.gardener.cloud/workloadidentities/" + namespace + "/"
	stored, err := etcd.Get(t.Context(), folder+"new")
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("read the identity: %+v, %v", stored, err)
	}
	for _, name := range []string{"old", "twin"} {
		value := strings.NewReplacer(`"name":"new"`, fmt.Sprintf(`"name":%q`, name), string(made.UID), old).Replace(string(stored.Kvs[0].Value))
		need(etcd.Put(t.Context(), folder+name, value))(t)
	}
	replica := shared.replica(t, storage)
	eventually(t, func() error {
		switch got := do(t, replica, "POST", identitiesPath(namespace), "application/json", givenJSON("thief", old)); got.Code {
		case http.StatusUnprocessableEntity:
			return nil
		case http.StatusCreated:
			return fatal{fmt.Errorf("the uid of an identity was given to another one: %s", got.Body)}
		default: // what reviews requests is ready a moment later
			return fmt.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

func (p plane) giveUIDs(t *testing.T, replica *rest.Config) {
	t.Helper()
	namespace := p.namespace(t)
	eventually(t, func() error { // what reviews requests is ready a moment later, and so are the uids of what is there
		return do(t, replica, "POST", identitiesPath(namespace)+"?dryRun=All", "application/json", givenJSON("ready", string(uuid.NewUUID()))).is(http.StatusCreated)
	})
	for i := range 10 {
		for _, names := range [][2]string{{"a", "b"}, {"c", "c"}} {
			given, codes := string(uuid.NewUUID()), [2]int{}
			var both sync.WaitGroup
			for j, config := range []*rest.Config{p.config(t), replica} {
				both.Go(func() {
					codes[j] = do(t, config, "POST", identitiesPath(namespace), "application/json", givenJSON(fmt.Sprintf("%s-%d", names[j], i), given)).Code
				})
			}
			both.Wait()
			refused := http.StatusUnprocessableEntity
			if names[0] == names[1] {
				refused = http.StatusConflict
			}
			if min(codes[0], codes[1]) != http.StatusCreated || max(codes[0], codes[1]) != refused {
				t.Errorf("%v: codes %v, want %d and %d", names, codes, http.StatusCreated, refused)
			}
		}
	}
}
