package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// events returns the audit events of a log with this ID.
func events(t *testing.T, file, id string) []auditv1.Event {
	t.Helper()
	return eventsSince(t, file, nil, id)
}

// eventsSince is events without those that were written before start was taken of the log. nil: with all.
func eventsSince(t *testing.T, file string, start os.FileInfo, text string) []auditv1.Event {
	t.Helper()
	var found []auditv1.Event
	for _, name := range auditLog(t, file) {
		log, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) { // it was renamed a moment ago
			continue
		}
		must(t, err)
		defer log.Close()
		info, err := log.Stat()
		switch {
		case err != nil:
			t.Fatal(err)
		case start == nil:
		case os.SameFile(info, start):
			_, err = log.Seek(start.Size(), io.SeekStart)
		case info.ModTime().Before(start.ModTime()):
			continue
		}
		must(t, err)
		lines := bufio.NewScanner(log)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			var event auditv1.Event
			if !bytes.Contains(lines.Bytes(), []byte(text)) || json.Unmarshal(lines.Bytes(), &event) != nil {
				continue // also the line that is being written
			}
			found = append(found, event)
		}
	}
	return found
}

// auditLog returns the files of an audit log, the oldest first: a server that has filled one renames it, and begins another.
func auditLog(t *testing.T, file string) []string {
	t.Helper()
	full := need(filepath.Glob(strings.TrimSuffix(file, ".log") + "-*.log"))(t)
	return append(full, file)
}

// audited waits for the events of a request for a token in both audit logs, which have nothing of its bodies, and returns that of our API server.
func (p plane) audited(t *testing.T, id string) (ours auditv1.Event) {
	t.Helper()
	for _, log := range []string{filepath.Join(p.Dir, "devcluster", "audit.log"), filepath.Join(p.Dir, "apiserver-audit.log")} {
		eventually(t, func() error {
			found := events(t, log, id)
			if len(found) == 0 {
				return fmt.Errorf("no event %s in %s", id, log)
			}
			for _, event := range found {
				if event.Level != auditv1.LevelMetadata || event.RequestObject != nil || event.ResponseObject != nil {
					t.Errorf("%s: an event of a token request at level %s", log, event.Level)
				}
			}
			ours = found[0]
			return nil
		})
	}
	return ours
}

func TestAudit(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	wi := shared.create(t, namespace, "one", "aws", "a")
	account := need(shared.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "account"}}, metav1.CreateOptions{}))(t)
	shared.grant(t, namespace, rbacv1.Subject{Kind: "ServiceAccount", Name: "account", Namespace: namespace}, rbacv1.PolicyRule{
		APIGroups: []string{"authentication.gardener.cloud"}, Resources: []string{"workloadidentities"}, Verbs: []string{"use"},
	})
	spec := fmt.Sprintf(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":"account","namespace":%q,"uid":%q}}`, namespace, account.UID)
	got := do(t, shared.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(spec))
	issued := decodeTokenRequest(t, got).Status.Token
	header, c := claims(t, issued)
	id := got.Header.Get("Audit-Id")
	if id == "" {
		t.Fatalf("answer without Audit-ID: %v", got.Header)
	}
	annotations := map[string]string{}
	for key, value := range shared.audited(t, id).Annotations {
		if rest, ok := strings.CutPrefix(key, "token.authentication.gardener.cloud/"); ok {
			annotations[rest] = value
		}
	}
	want := map[string]string{
		"jti": c["jti"].(string), "kid": header.KeyID, "sub": wi.Status.Sub,
		"context": "v1/ServiceAccount/" + namespace + "/account/" + string(account.UID),
	}
	expect(t, same(want, annotations), "annotations")
	searchFor(t, shared.Dir, issued)
}

// searchFor fails if a token, or its signature alone, stands in any file below dir but the databases' own.
func searchFor(t *testing.T, dir, token string) {
	t.Helper()
	signature := []byte(token[strings.LastIndexByte(token, '.')+1:])
	files := 0
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a temporary one
			return nil
		}
		if err != nil {
			return err
		}
		files++
		if bytes.Contains(content, signature) {
			t.Errorf("%s holds the token", path)
		}
		return nil
	}))
	if files < 10 {
		t.Fatalf("searched %d files below %s only", files, dir)
	}
}

// Nor must etcd, logs and caches hold private keys where they don't belong.
func TestComponentsHoldLeastRights(t *testing.T) {
	inTurn(t)
	const discovery = "system:serviceaccount:credence-system:credence-discovery"
	const apiserver = "system:serviceaccount:credence-system:credence-apiserver"
	for _, test := range []struct{ who, verb, resource, namespace, want string }{
		{discovery, "get", "configmaps/credence-discovery", "credence-system", "yes"},
		{discovery, "update", "configmaps/credence-discovery", "credence-system", "no"},
		{discovery, "get", "configmaps/other", "credence-system", "no"},
		{discovery, "get", "secrets", "credence-system", "no"},
		{discovery, "get", "workloadidentities.authentication.gardener.cloud", "default", "no"},
		{apiserver, "update", "configmaps/credence-discovery", "credence-system", "yes"},
		{apiserver, "get", "secrets", "credence-system", "no"},
		{apiserver, "create", "configmaps", "credence-system", "no"},
		{apiserver, "impersonate", "users", "", "no"},
		{apiserver, "create", "serviceaccounts/token", "default", "no"},
	} {
		args := []string{"auth", "can-i", test.verb, test.resource, "--as", test.who, "-n", test.namespace}
		out, _, _ := shared.command(t, "", "kubectl", args...)
		if got := strings.TrimSpace(out); got != test.want {
			t.Errorf("%s %s %s: %s, want %s", test.who, test.verb, test.resource, got, test.want)
		}
	}
}
