package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// restoreRecords loses all records, and puts them back as a backup program of clusters does: as new objects, with labels of its own.
func (p plane) restoreRecords(t *testing.T, namespace string, wi *v1alpha1.WorkloadIdentity) {
	t.Helper()
	p.bindCluster(t, "restorer", "credence:records:restorer")
	restorer, writer := p.as(t, "restorer"), p.as(t, "writer")
	role, err := p.client(t).RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"storage.credence.dev"}, Resources: []string{"records"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"},
	}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
		text, err := json.Marshal(&record)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
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
