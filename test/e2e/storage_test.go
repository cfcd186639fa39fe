package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	recordsPath    = "/apis/storage.credence.dev/v1/records"
	definitionPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/records.storage.credence.dev"
	mergePatch     = "application/merge-patch+json"
)

func (p plane) read(t *testing.T, path string) *v1alpha1.WorkloadIdentity {
	t.Helper()
	wi := &v1alpha1.WorkloadIdentity{}
	eventually(t, func() error {
		got := do(t, p.config(t), "GET", path, "", "")
		if got.Code != http.StatusOK {
			return fmt.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
		return json.Unmarshal(got.Body, wi)
	})
	return wi
}

// follow starts an informer of identities, and returns what it knows of them, by name.
func (p plane) follow(t *testing.T, namespace string) func() map[string]string {
	t.Helper()
	client := need(dynamic.NewForConfig(p.config(t)))(t)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(v1alpha1.SchemeGroupVersion.WithResource("workloadidentities")).Informer()
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer has not read identities")
	}
	return func() map[string]string {
		known := map[string]string{}
		for _, item := range informer.GetStore().List() {
			object := item.(*unstructured.Unstructured)
			known[object.GetName()] = string(object.GetUID())
		}
		return known
	}
}

// Identities that are records keep uid and subject whichever server ends, and informers go on.
func TestPlaneStorageInTheCluster(t *testing.T) {
	withPlane(t)
	p := newPlane(t, "--storage", "cluster")
	namespace := p.namespace(t)
	first := p.create(t, namespace, "first", "aws", "team")
	known := p.follow(t, namespace)
	want := map[string]string{"first": string(first.UID)}
	same := func() error {
		if got := known(); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the informer knows %v, want %v", got, want)
		}
		return nil
	}
	eventually(t, same)

	if _, stderr, code := p.command(t, "", "credence-server", "storage", "copy", "--from", "cluster", "--to", "embedded:"+t.TempDir(), "--kubeconfig", filepath.Join(p.Dir, "pki", "apiserver", "kubeconfig")); code != 1 || !strings.Contains(stderr, "an API server of Credence answers in this cluster") {
		t.Errorf("copy while the server runs: exit code %d, %s", code, stderr)
	}
	path := identitiesPath(namespace) + "/first"
	if got := do(t, p.config(t), "PATCH", path, mergePatch, `{"metadata":{"labels":{"a":"b"}}}`); got.Code != http.StatusOK {
		t.Fatalf("a change: %d %s", got.Code, got.Body)
	}
	for _, component := range []string{"apiserver", "devcluster"} {
		p.restart(t, component)
		eventually(t, func() error {
			return p.client(t).Discovery().RESTClient().Get().AbsPath(identitiesPath(namespace)).Do(t.Context()).Error()
		})
		if again := p.read(t, path); again.UID != first.UID || again.Status.Sub != first.Status.Sub || again.Labels["a"] != "b" {
			t.Errorf("after a restart of %s: uid %s, subject %s, labels %v; want %s, %s", component, again.UID, again.Status.Sub, again.Labels, first.UID, first.Status.Sub)
		}
		eventually(t, func() error {
			got := do(t, p.config(t), "POST", identitiesPath(namespace), "application/json", identityJSON("after-"+component, "aws", "team"))
			if got.Code != http.StatusCreated && got.Code != http.StatusConflict {
				return fmt.Errorf("create: %d %s", got.Code, got.Body)
			}
			return nil
		})
		want["after-"+component] = string(p.read(t, identitiesPath(namespace)+"/after-"+component).UID)
		eventually(t, same)
	}
	if got := do(t, p.config(t), "DELETE", identitiesPath(namespace)+"/after-apiserver", "", ""); got.Code != http.StatusOK {
		t.Errorf("delete: %d %s", got.Code, got.Body)
	}
	delete(want, "after-apiserver")
	eventually(t, same)

	t.Run("uids", func(t *testing.T) {
		p.giveUIDs(t, p.replica(t, map[string]string{"storage": "cluster"}))
	})
	t.Run("quotas", func(t *testing.T) {
		p.quotasOfShoots(t, map[string]string{"storage": "cluster"})
	})
	t.Run("another installation", func(t *testing.T) {
		p.refuseToStart(t, []string{"whose issuer is " + p.Issuer, "a cluster, or an etcd, of its own"}, map[string]string{"storage": "cluster", "etcd-data-dir": ""})
	})
	t.Run("attacks", func(t *testing.T) { p.attackRecords(t, namespace, first) })
	t.Run("restore", func(t *testing.T) { p.restoreRecords(t, namespace, first) })
}

// attackRecords tries to change a record past the API server.
func (p plane) attackRecords(t *testing.T, namespace string, wi *v1alpha1.WorkloadIdentity) {
	t.Helper()
	name := "authentication.gardener.cloud0-workloadidentities0-" + strings.ReplaceAll(namespace, "0", "00") + "0-first"
	key := "/authentication.gardener.cloud/workloadidentities/" + namespace + "/first"
	rbac := p.client(t).RbacV1()
	role, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"storage.credence.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}}, // escalate and bind too
	}}, metav1.CreateOptions{})
	must(t, err)
	must(t, errOf(rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{user("mallory"), {Kind: "ServiceAccount", Namespace: "credence-system", Name: "credence-controller"}},
	}, metav1.CreateOptions{})))
	p.untilGiven(t, "", user("mallory"), role.Rules)
	record := fmt.Sprintf(`{"apiVersion":"storage.credence.dev/v1","kind":"Record","metadata":{"name":"%%s"%%s},"key":%q,"value":"e30="}`, key)
	var current metav1.PartialObjectMetadata
	if got := do(t, p.config(t), "GET", recordsPath+"/"+name, "", ""); json.Unmarshal(got.Body, &current) != nil || current.ResourceVersion == "" {
		t.Fatalf("the record: %d %s", got.Code, got.Body)
	}
	version := fmt.Sprintf(`,"resourceVersion":%q`, current.ResourceVersion)
	for _, who := range []struct{ name, user string }{{"the administrator", ""}, {"a user with all rights on records", "mallory"}, {"another component", "system:serviceaccount:credence-system:credence-controller"}} {
		config := p.config(t)
		if who.user != "" {
			config = p.as(t, who.user)
		}
		for _, attack := range []struct{ method, path, contentType, body string }{
			{"POST", recordsPath, "application/json", fmt.Sprintf(record, "another", "")},
			{"PUT", recordsPath + "/" + name, "application/json", fmt.Sprintf(record, name, version)},
			{"PATCH", recordsPath + "/" + name, mergePatch, `{"value":"e30="}`},
			{"PATCH", recordsPath + "/" + name, mergePatch, `{"metadata":{"labels":{"storage.credence.dev/namespace":"another"}}}`},
			{"PATCH", recordsPath + "/" + name, mergePatch, `{"metadata":{"finalizers":["example.com/kept"]}}`},
			{"PATCH", recordsPath + "/" + name, mergePatch, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"x","uid":"x"}]}}`},
			{"PATCH", recordsPath + "/" + name + "?fieldManager=m&force=true", "application/apply-patch+yaml", fmt.Sprintf(record, name, "")},
			{"PATCH", recordsPath + "/new?fieldManager=m&force=true", "application/apply-patch+yaml", fmt.Sprintf(record, "new", "")},
			{"DELETE", recordsPath + "/" + name, "", ""},
			{"DELETE", recordsPath, "", ""},
			{"PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.storage.credence.dev", mergePatch, `{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}},"spec":{"service":{"name":"x","namespace":"default","port":443}}}`},
			{"DELETE", definitionPath, "", ""},
			{"DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Drecords.storage.credence.dev", "", ""},
			{"PATCH", definitionPath, mergePatch, `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://example.com"}}}}}`},
			{"PATCH", definitionPath, mergePatch, `{"spec":{"versions":[{"name":"v1","served":false,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`},
			{"PATCH", definitionPath, mergePatch, `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"key":{"type":"string"}}}}}]}}`},
			{"PATCH", definitionPath, "application/json-patch+json", `[{"op":"add","path":"/spec/versions/-","value":{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}}]`},
		} {
			got := do(t, config, attack.method, attack.path, attack.contentType, attack.body)
			if got.Code != http.StatusForbidden || !strings.Contains(string(got.Body), "Credence") {
				t.Errorf("%s: %s %s %s: %d %s", who.name, attack.method, attack.path, attack.body, got.Code, got.Body)
			}
		}
	}
	// A subresource that the definition does not have is no way in, and a user without rights comes to no policy.
	if got := do(t, p.config(t), "PATCH", recordsPath+"/"+name+"/status", mergePatch, `{"value":"e30="}`); got.Code != http.StatusNotFound {
		t.Errorf("status: %d %s", got.Code, got.Body)
	}
	if got := do(t, p.as(t, "jane"), "GET", recordsPath+"/"+name, "", ""); got.Code != http.StatusForbidden {
		t.Errorf("a user without rights read a record: %d %s", got.Code, got.Body)
	}
	if again := p.read(t, identitiesPath(namespace)+"/first"); again.UID != wi.UID || again.Status.Sub != wi.Status.Sub {
		t.Errorf("after the attacks the identity is %+v", again)
	}
}

// restoreRecords loses all records, and puts them back as a backup program of clusters does: as new objects, with labels of its own.
func (p plane) restoreRecords(t *testing.T, namespace string, wi *v1alpha1.WorkloadIdentity) {
	t.Helper()
	p.bindCluster(t, "restorer", "credence:records:restorer")
	restorer, writer := p.as(t, "restorer"), p.as(t, "writer")
	role := need(p.client(t).RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"storage.credence.dev"}, Resources: []string{"records"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"},
	}}}, metav1.CreateOptions{}))(t)
	p.bindCluster(t, "writer", role.Name)
	saved := &unstructured.UnstructuredList{}
	if got := do(t, restorer, "GET", recordsPath, "", ""); json.Unmarshal(got.Body, saved) != nil || len(saved.Items) < 4 { // identities, their uids, the KeyRing
		t.Fatalf("records: %d %s", got.Code, got.Body)
	}
	var backup []string
	for _, record := range saved.Items {
		record.SetResourceVersion("")
		record.SetUID("")
		record.SetManagedFields(nil)
		labels := record.GetLabels()
		labels["backup.example/name"] = "daily"
		record.SetLabels(labels)
		text := need(json.Marshal(&record))(t)
		backup = append(backup, string(text))
	}
	refused := func(what string, got response, text string) {
		t.Helper()
		if got.Code != http.StatusForbidden || !strings.Contains(string(got.Body), text) {
			t.Errorf("%s: %d %s, want %q", what, got.Code, got.Body, text)
		}
	}
	forged := `{"apiVersion":"storage.credence.dev/v1","kind":"Record","metadata":{"name":"x"},"key":"/x","value":"e30="}`
	refused("while an API server runs", do(t, restorer, "POST", recordsPath, "application/json", forged), "an API server of Credence runs")
	refused("while an API server runs, as an administrator", do(t, p.config(t), "POST", recordsPath, "application/json", forged), "an API server of Credence runs")

	pid := p.part(t, "apiserver").PID
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // it is gone, unless the test has failed
	server := p.as(t, "system:serviceaccount:credence-system:credence-apiserver")
	for _, record := range saved.Items {
		// That of an identity in a namespace of an earlier test may be gone since the list was read.
		if got := do(t, server, "DELETE", recordsPath+"/"+record.GetName(), "", ""); got.Code != http.StatusOK && got.Code != http.StatusNotFound {
			t.Fatalf("delete %s: %d %s", record.GetName(), got.Code, got.Body)
		}
	}
	for _, record := range backup {
		eventually(t, func() error { // the cluster finds that the server does not answer
			if got := do(t, restorer, "POST", recordsPath, "application/json", record); got.Code != http.StatusCreated {
				return fmt.Errorf("restore: %d %s", got.Code, got.Body)
			}
			return nil
		})
	}
	path := recordsPath + "/" + saved.Items[0].GetName()
	restored := &unstructured.Unstructured{}
	if got := do(t, restorer, "GET", path, "", ""); json.Unmarshal(got.Body, restored) != nil || restored.GetResourceVersion() == "" {
		t.Fatalf("a restored record: %d %s", got.Code, got.Body)
	}
	changed := strings.Replace(backup[0], `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":%q,`, restored.GetResourceVersion()), 1)
	refused("a record, without the verb restore", do(t, writer, "POST", recordsPath, "application/json", forged), "with the verb restore only")
	for _, attack := range []struct{ method, path, contentType, body string }{
		{"PUT", path, "application/json", changed},
		{"PATCH", path, mergePatch, `{"value":"e30="}`},
		{"PATCH", path + "?fieldManager=m&force=true", applyPatch, backup[0]},
		{"DELETE", path, "", ""},
		{"DELETE", recordsPath, "", ""},
	} {
		refused("the restorer: "+attack.method+" "+attack.path, do(t, restorer, attack.method, attack.path, attack.contentType, attack.body), "cannot")
		for _, config := range []*rest.Config{writer, p.config(t)} {
			refused(attack.method+" "+attack.path, do(t, config, attack.method, attack.path, attack.contentType, attack.body), "may neither change nor delete them")
		}
	}

	p.restart(t, "apiserver")
	again := p.read(t, identitiesPath(namespace)+"/first")
	if again.UID != wi.UID || again.Status.Sub != wi.Status.Sub || again.Status.Issuer != wi.Status.Issuer {
		t.Errorf("after the restore: uid %s, status %+v, want %s, %s", again.UID, again.Status, wi.UID, wi.Status.Sub)
	}
	eventually(t, func() error { // the server has taken the uids, too
		if got := do(t, p.config(t), "POST", identitiesPath(namespace), "application/json", givenJSON("thief", string(wi.UID))); got.Code != http.StatusUnprocessableEntity {
			return fmt.Errorf("the uid of a restored identity, for another one: %d %s", got.Code, got.Body)
		}
		return nil
	})
	token(t, p.config(t), namespace, "first", `{}`)
	eventually(t, func() error { // the policy learns a moment later that the server answers
		if got := do(t, restorer, "POST", recordsPath+"?dryRun=All", "application/json", forged); !strings.Contains(string(got.Body), "an API server of Credence runs") {
			return fmt.Errorf("after the restore: %d %s", got.Code, got.Body)
		}
		return nil
	})
}
