package sdk

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/sdk/plane"
	"github.com/credence-id/credence/test/sdk/sts"
	"github.com/credence-id/credence/test/testkit"
)

// clusterPort is that of the clusters, one after the other: so they have the same issuer. The network is the tests' own.
const clusterPort = "17443"

// wholePlane is a whole one, in a cluster of its own.
type wholePlane struct{ folder string }

func startPlane(t *testing.T) *wholePlane {
	t.Helper()
	p := &wholePlane{t.TempDir()}
	t.Cleanup(func() { p.end(t) })
	p.run(t, "", "credence", "up", "--detach", "--dir", p.folder, "--port", clusterPort)
	return p
}

// end stops it, if it runs, and removes all that it has stored.
func (p *wholePlane) end(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(built("credence"), "down", "--dir", p.folder).CombinedOutput(); err != nil { // also in a cleanup
		t.Errorf("down: %v\n%s", err, out)
	}
	testkit.Expect(t, os.RemoveAll(p.folder))
	testkit.Expect(t, os.Mkdir(p.folder, 0o700))
}

func (p *wholePlane) run(t *testing.T, stdin, program string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), built(program), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(p.folder, "kubeconfig"), "HOME="+t.TempDir())
	command.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(arguments, " "), err, out, stderr.String())
	}
	return string(out)
}

// trustedBy has the clouds trust the certificates of a plane, as they do public authorities: with a name of one's own, that of the issuer is
// signed by these in each cluster.
func (p *wholePlane) trustedBy(t *testing.T, w *world) {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(p.folder, "ca.crt"))
	if err != nil || !w.pool.AppendCertsFromPEM(authority) {
		t.Fatalf("authority of the plane: %v", err)
	}
}

// create makes the identities from manifests.
func (p *wholePlane) create(t *testing.T) {
	t.Helper()
	p.run(t, "", "kubectl", "create", "namespace", "shop")
	for _, c := range goClouds() {
		p.run(t, fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":%q,"namespace":"shop"},"spec":{"audiences":[%q],"targetSystem":{"type":%q,"providerConfig":%s}}}`,
			workloadIdentity(c.name).Name, c.audience, c.name, c.providerConfig), "kubectl", "create", "-f", "-")
	}
}

// token requests one of the identity that a cloud trusts.
func (p *wholePlane) token(t *testing.T, c cloud) plane.Issued {
	t.Helper()
	text := strings.TrimSpace(p.run(t, "", "credence", "token", "create", workloadIdentity(c.name).Name, "-n", "shop"))
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		t.Fatalf("a token of %d parts", len(parts))
	}
	var found struct{ Kid, Jti, Sub string }
	for _, part := range parts[:2] {
		decoded := testkit.Need(base64.RawURLEncoding.DecodeString(part))(t)
		testkit.Must(t, json.Unmarshal(decoded, &found))
	}
	return plane.Issued{Token: identity.NewToken(text), ID: found.Jti, KeyID: identity.KeyID(found.Kid), Subject: identity.Subject(found.Sub)}
}

// A cluster is lost, with its keys. In a new one with the same issuer the identities are restored: programs that have run all along get
// credentials with the clouds' trust as it was. With identities that were made anew from their manifests they get none.
func TestProgramsGoOnInANewCluster(t *testing.T) {
	requireIsolation(t)
	p := startPlane(t)
	p.create(t)
	var endpoints struct{ Issuer string }
	described, err := os.ReadFile(filepath.Join(p.folder, "endpoints.json"))
	if err == nil {
		err = json.Unmarshal(described, &endpoints)
	}
	testkit.Must(t, err)
	w := newClouds(t, nil, func(c cloud) sts.Trust {
		subject := p.run(t, "", "kubectl", "get", "wi", workloadIdentity(c.name).Name, "-n", "shop", "-o", "jsonpath={.status.sub}")
		return sts.Trust{Issuer: endpoints.Issuer, Audience: c.audience, Subject: subject}
	})
	p.trustedBy(t, w)
	tokens := func() map[string]plane.Issued {
		all := map[string]plane.Issued{}
		for _, c := range goClouds() {
			all[c.name] = p.token(t, c)
		}
		return all
	}
	first := tokens()
	programs := clouds()
	programs = programs[:min(len(goClouds())+1, len(programs))] // one in Python is enough
	pods := make([]*pod, len(programs))
	for i, c := range programs {
		pods[i] = newPod(t, c, w.authority) // those of one cloud have the same volume
	}
	for i, c := range programs {
		pods[i].deliver(t, first[c.name].Token)
		pods[i].start(t)
		w.granted(t, c, pods[i].ask(t), first[c.name])
	}
	file := filepath.Join(t.TempDir(), "identities.backup")
	p.run(t, "", "credence", "backup", "create", file)

	p.end(t)
	p = startPlane(t)
	p.trustedBy(t, w)
	p.create(t)
	anew := tokens()
	for i, c := range programs {
		pods[i].deliver(t, anew[c.name].Token)
		another := *pods[i]
		another.stdin = nil
		another.start(t, "AWS_MAX_ATTEMPTS=1")
		if got := another.ask(t); !shows(got.Error, c.refusals.subject) {
			t.Errorf("%s, with an identity that was made anew: %q, want %q in it", c, got.Error, c.refusals.subject)
		}
	}
	p.run(t, "", "kubectl", "delete", "wi", "--all", "-n", "shop")
	p.run(t, "", "credence", "backup", "restore", file, "--yes")
	restored := tokens()
	for i, c := range programs {
		if restored[c.name].KeyID == first[c.name].KeyID {
			t.Errorf("%s: the key %s is that of the lost cluster", c, first[c.name].KeyID)
		}
		pods[i].deliver(t, restored[c.name].Token)
		if c.cachesToken {
			pods[i].start(t) // in place of ten minutes
		}
		w.granted(t, c, pods[i].ask(t), restored[c.name])
	}
}
