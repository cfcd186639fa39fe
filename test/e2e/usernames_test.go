package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

func profilesPath(namespace string) string {
	return "/apis/accounts.credence.dev/v1alpha1/namespaces/" + namespace + "/serviceaccountprofiles"
}

// createProfile makes the profile of an account, with a spec in JSON.
func (p plane) createProfile(t *testing.T, namespace, name, spec string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"ServiceAccountProfile","metadata":{"name":%q},"spec":%s}`, name, spec)
	must(t, do(t, p.config(t), "POST", profilesPath(namespace), "application/json", body).is(http.StatusCreated), "create profile", name)
}

// awaitProfile waits until a condition of a profile has a reason, and returns the profile.
func (p plane) awaitProfile(t *testing.T, namespace, name, condition, reason string) accounts.ServiceAccountProfile {
	t.Helper()
	var profile accounts.ServiceAccountProfile
	eventually(t, func() error {
		got := do(t, p.config(t), "GET", profilesPath(namespace)+"/"+name, "", "")
		profile = accounts.ServiceAccountProfile{}
		if err := json.Unmarshal(got.Body, &profile); err != nil {
			return err
		}
		found := meta.FindStatusCondition(profile.Status.Conditions, condition)
		if found == nil || found.Reason != reason || profile.Status.ObservedGeneration != profile.Generation {
			return fmt.Errorf("profile %s, want %s by %s: %+v", name, condition, reason, profile.Status)
		}
		return nil
	})
	return profile
}

// accountThatUses makes an account that may use the identities of a namespace, and returns the spec of requests for tokens in its name.
func (p plane) accountThatUses(t *testing.T, namespace, name string) string {
	t.Helper()
	var account *corev1.ServiceAccount
	eventually(t, func() (err error) { // until the policies know the kinds of their parameters
		account, err = p.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	})
	p.letUse(t, namespace, "system:serviceaccount:"+namespace+":"+name)
	return fmt.Sprintf(`{"contextObject":{"apiVersion":"v1","kind":"ServiceAccount","name":%q,"namespace":%q,"uid":%q}}`, name, namespace, account.UID)
}

// usernameOf returns the username in a new token in the name of an account; empty if it has none.
func (p plane) usernameOf(t *testing.T, namespace, spec string) (string, error) {
	t.Helper()
	got := do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(spec))
	if got.Code != http.StatusCreated {
		return "", fmt.Errorf("%d %s", got.Code, got.Body)
	}
	_, c := claims(t, decodeTokenRequest(t, got).Status.Token)
	own, _ := c["identity.credence.dev"].(map[string]any)
	name, _ := own["username"].(string)
	return name, nil
}

// awaitUsername waits until tokens in the name of an account have a username.
func (p plane) awaitUsername(t *testing.T, namespace, spec, want string) {
	t.Helper()
	eventually(t, func() error {
		if name, err := p.usernameOf(t, namespace, spec); err != nil || name != want {
			return fmt.Errorf("a token has the username %q (%v), want %q", name, err, want)
		}
		return nil
	})
}

// A profile gives its account a name outside of the cluster, which no other account has, and which stays.
func TestUsernames(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	shared.create(t, namespace, "one", "generic", "a")
	cart, pay, plain := shared.accountThatUses(t, namespace, "cart"), shared.accountThatUses(t, namespace, "pay"), shared.accountThatUses(t, namespace, "plain")
	of := func(name string) string { return name + "." + namespace + "@serviceaccounts.plane.example" }
	explicit := "shop/" + namespace

	shared.createProfile(t, namespace, "cart", `{}`)
	if got := shared.awaitProfile(t, namespace, "cart", "UsernameUnique", "UsernameUnique"); got.Status.Username != of("cart") {
		t.Errorf("the username is %q", got.Status.Username)
	}
	shared.awaitUsername(t, namespace, cart, of("cart"))

	t.Log("names that an account can't have")
	// In capitals, as a policy refuses it as it is.
	shared.createProfile(t, namespace, "pay", `{"username":"`+strings.ToUpper(of("cart"))+`"}`)
	got := shared.awaitProfile(t, namespace, "pay", "UsernameUnique", "UsernameReserved")
	if message := meta.FindStatusCondition(got.Status.Conditions, "UsernameUnique").Message; got.Status.Username != "" || !strings.Contains(message, "is the default of service account cart of namespace "+namespace) {
		t.Errorf("username %q: %s", got.Status.Username, message)
	}
	for _, bad := range []string{"system:masters", "a\x00b", "a\nb", "-a", "ü"} {
		text := need(json.Marshal(bad))(t)
		expect(t, do(t, shared.config(t), "PATCH", profilesPath(namespace)+"/pay", mergePatch, `{"spec":{"username":`+string(text)+`}}`).is(http.StatusUnprocessableEntity, "spec.username"), fmt.Sprintf("username %q", bad))
	}
	if name, err := shared.usernameOf(t, namespace, pay); err != nil || name != "" {
		t.Errorf("a token has the username %q: %v", name, err)
	}

	t.Log("a name that is taken")
	shared.createProfile(t, namespace, "plain", `{"username":"`+explicit+`"}`)
	shared.awaitUsername(t, namespace, plain, explicit)
	must(t, do(t, shared.config(t), "PATCH", profilesPath(namespace)+"/pay", mergePatch, `{"spec":{"username":"`+strings.ToUpper(explicit)+`"}}`).is(http.StatusOK))
	shared.awaitProfile(t, namespace, "pay", "UsernameUnique", "UsernameTaken")
	if name, err := shared.usernameOf(t, namespace, pay); err != nil || name != "" {
		t.Errorf("the second has the username %q: %v", name, err)
	}

	t.Log("a name that stays, and one that is free again")
	must(t, do(t, shared.config(t), "PATCH", profilesPath(namespace)+"/cart", mergePatch, `{"spec":{"username":"other/`+namespace+`"}}`).is(http.StatusOK))
	if got := shared.awaitProfile(t, namespace, "cart", "UsernameUnique", "UsernameKept"); got.Status.Username != of("cart") {
		t.Errorf("the username is %q", got.Status.Username)
	}
	must(t, do(t, shared.config(t), "DELETE", profilesPath(namespace)+"/plain", "", "").is(http.StatusOK))
	// At once: before the watch shows it.
	if name, err := shared.usernameOf(t, namespace, plain); err != nil || name != "" {
		t.Errorf("an account whose profile was deleted has the username %q: %v", name, err)
	}
	shared.awaitUsername(t, namespace, pay, strings.ToUpper(explicit))
	shared.awaitWarning(t, namespace, "UsernameKept")
}

// Ready names what is wrong with a profile, and follows what it refers to.
func TestProfileStatus(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	root := shared.client(t)
	shared.createProfile(t, namespace, "cart", `{"securityContext":{"templateRef":{"name":"`+namespace+`"}}}`)
	shared.awaitProfile(t, namespace, "cart", "Ready", "TemplateMissing")
	template := `{"apiVersion":"accounts.credence.dev/v1alpha1","kind":"SecurityContextTemplate","metadata":{"name":"` + namespace + `"},"spec":{"pod":{"runAsUser":-1}}}`
	const templates = "/apis/accounts.credence.dev/v1alpha1/securitycontexttemplates"
	must(t, do(t, shared.config(t), "POST", templates, "application/json", template).is(http.StatusCreated))
	defer do(t, shared.config(t), "DELETE", templates+"/"+namespace, "", "")
	got := shared.awaitProfile(t, namespace, "cart", "Ready", "SecurityContextInvalid")
	if message := meta.FindStatusCondition(got.Status.Conditions, "Ready").Message; !strings.Contains(message, "spec.pod.runAsUser: Invalid value: -1") || !strings.Contains(message, "SecurityContextTemplate "+namespace) {
		t.Errorf("message %s", message)
	}
	must(t, do(t, shared.config(t), "PATCH", templates+"/"+namespace, mergePatch, `{"spec":{"pod":{"runAsUser":1}}}`).is(http.StatusOK))
	shared.awaitProfile(t, namespace, "cart", "Ready", "AccountMissing")
	need(root.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, metav1.CreateOptions{}))(t)
	shared.awaitProfile(t, namespace, "cart", "Ready", "ProfileApplied")
	must(t, root.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "cart", metav1.DeleteOptions{}))
	shared.awaitProfile(t, namespace, "cart", "Ready", "AccountMissing")
	shared.awaitWarning(t, namespace, "AccountMissing", "kubectl create serviceaccount cart -n "+namespace)
}

// A thousand profiles want a hundred names, while the process is killed, and replaced by two: no name has two holders, none is lost, and each
// profile has an answer. An API server that can't read profiles issues no token in the name of an account.
func TestPlaneUsernamesOfAThousandProfiles(t *testing.T) {
	first(t, ofPlane, 2)
	p := newPlane(t)
	namespace := p.namespace(t)
	p.create(t, namespace, "one", "generic", "a")
	spec := p.accountThatUses(t, namespace, "a1")
	const n, names = 1000, 100
	for i := range n {
		explicit := "{}"
		if i%2 == 0 {
			explicit = fmt.Sprintf(`{"username":"team/%d"}`, i%names)
		}
		p.createProfile(t, namespace, fmt.Sprint("a", i), explicit)
		switch i {
		case n / 4:
			p.killPart(t, "profiles")
		case n / 2:
			// A second replica, with the credentials of the first.
			p.second(t)
		case 3 * n / 4:
			p.killPart(t, "profiles")
		}
	}
	holders := map[string]string{}
	eventually(t, func() error {
		var list accounts.ServiceAccountProfileList
		if err := json.Unmarshal(do(t, p.config(t), "GET", profilesPath(namespace), "", "").Body, &list); err != nil {
			return err
		}
		clear(holders)
		refused := 0
		for _, profile := range list.Items {
			found := meta.FindStatusCondition(profile.Status.Conditions, "UsernameUnique")
			if found == nil {
				return fmt.Errorf("%s has no answer", profile.Name)
			}
			name := profile.Status.Username
			if other, taken := holders[name]; taken && name != "" {
				t.Fatalf("%s and %s have the username %s", other, profile.Name, name)
			}
			if name == "" {
				refused++
			}
			holders[name] = profile.Name
		}
		if want := n/2 - names/2; len(list.Items) != n || refused != want {
			return fmt.Errorf("%d of %d have no username, want %d", refused, len(list.Items), want)
		}
		return nil
	})
	p.awaitUsername(t, namespace, spec, "a1."+namespace+"@serviceaccounts.plane.example")

	t.Log("the API server may not read profiles any more")
	roles := p.client(t).RbacV1().ClusterRoles()
	role := need(roles.Get(t.Context(), "credence:apiserver", metav1.GetOptions{}))(t)
	var kept []rbacv1.PolicyRule
	for _, rule := range role.Rules {
		if !strings.Contains(strings.Join(rule.Resources, " "), "serviceaccountprofiles") {
			kept = append(kept, rule)
		}
	}
	role.Rules = kept
	need(roles.Update(t.Context(), role, metav1.UpdateOptions{}))(t)
	p.killPart(t, "apiserver")
	eventually(t, func() error {
		got := do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(spec))
		if got.Code == http.StatusCreated {
			t.Fatal("a token was issued whose username is not known")
		}
		if got.Code != http.StatusServiceUnavailable || !strings.Contains(string(got.Body), "has a username is not known") {
			return fmt.Errorf("%d %s", got.Code, got.Body)
		}
		return nil
	})
	// One that is in no account's name needs no profile.
	expect(t, do(t, p.config(t), "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(http.StatusCreated))
}

// killPart kills a part of a plane, and waits until it is back.
func (p plane) killPart(t *testing.T, name string) {
	t.Helper()
	before := p.part(t, name).PID
	process := need(os.FindProcess(before))(t)
	must(t, process.Kill())
	eventually(t, func() error {
		if now := p.part(t, name); !now.Healthy || now.PID == before {
			return errors.New(name + " is not back")
		}
		return nil
	})
}

// second runs another replica of credence-server profiles until the test ends.
func (p plane) second(t *testing.T, args ...string) {
	t.Helper()
	var log bytes.Buffer
	replica := exec.CommandContext(t.Context(), program("credence-server"), append([]string{"profiles", "--kubeconfig", filepath.Join(p.Dir, "pki", "profiles", "kubeconfig"), "--cluster-name", "plane.example"}, args...)...)
	replica.Stderr = &log
	must(t, replica.Start())
	t.Cleanup(func() {
		_ = replica.Process.Kill() // it may have ended
		_ = replica.Wait()
		if t.Failed() {
			t.Logf("second replica:\n%s", log.String())
		}
	})
}
