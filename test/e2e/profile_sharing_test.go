package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// To files with numeric owners, as NFS has them, two accounts with one runAsUser are one owner: each has what the other keeps to itself. The
// lint names both.
func accountsOfOneUserShareFiles(t *testing.T, of plane) {
	p := newProfiled(t, of)
	folder := t.TempDir()
	must(t, os.Chmod(folder, 0o777))
	p.must(t, "", "kubectl", "create", "serviceaccount", "till", "-n", p.namespace)
	p.must(t, "", "kubectl", "create", "serviceaccount", "mail", "-n", p.namespace)
	for account, user := range map[string]int{"cart": 20017, "till": 20017, "mail": 20018} {
		p.profile(t, account, fmt.Sprintf(`{"securityContext":{"mode":"Enforce","pod":{"runAsUser":%d,"runAsGroup":%d}}}`, user, user))
	}
	run := func(account, script string) string {
		pod := p.mustCreate(t, fmt.Sprintf(`{"serviceAccountName":%q,"hostNetwork":true,"restartPolicy":"Never","volumes":[{"name":"v","hostPath":{"path":%q}}],`+
			`"containers":[{"name":"c","image":"busybox:e2e","imagePullPolicy":"Never","volumeMounts":[{"name":"v","mountPath":"/v"}],"command":["/busybox","sh","-c",%q]}]}`, account, folder, "exec 2>&1; "+script+"; echo end"))
		p.waitForLog(t, p.namespace, pod.Name, "end")
		return p.must(t, "", "kubectl", "-n", p.namespace, "logs", pod.Name)
	}
	const look = "/busybox stat -c 'owner %u, mode %a' /v/file"
	if got := run("cart", "umask 077; echo of cart > /v/file; "+look); got != "owner 20017, mode 600\nend\n" {
		t.Errorf("cart writes a file: %q", got)
	}
	if got := run("mail", "/busybox cat /v/file"); !strings.Contains(got, "Permission denied") || strings.Contains(got, "of cart") {
		t.Errorf("an account with another user: %q", got)
	}
	if got := run("till", "/busybox cat /v/file; echo of till > /v/file; "+look); got != "of cart\nowner 20017, mode 600\nend\n" {
		t.Errorf("an account with the same user: %q", got)
	}
	if got := run("cart", "/busybox cat /v/file"); got != "of till\nend\n" {
		t.Errorf("cart reads its file again: %q", got)
	}
	profiles := p.must(t, "", "kubectl", "get", "serviceaccountprofiles", "-n", p.namespace, "-o", "yaml")
	if got := p.must(t, profiles, "credence", "profile", "lint", "-f", "-"); strings.Count(got, "(same-user)") != 1 || !strings.Contains(got, "/till") || !strings.Contains(got, "/cart") {
		t.Errorf("lint:\n%s", got)
	}
}
