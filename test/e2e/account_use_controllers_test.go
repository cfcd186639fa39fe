package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The cluster's own controllers make pods of templates whose authors had the right: after a roll-out, a roll-back, a change of scale by a user
// without it, and a deletion under OnDelete.
func TestAccountUseByControllers(t *testing.T) {
	inTurn(t)
	a := newAccountUse(t, shared, "enforce")
	kubectl := func(who, stdin string, args ...string) error {
		t.Helper()
		_, stderr, code := a.command(t, stdin, "kubectl", append([]string{"--as", who, "-n", a.namespace}, args...)...)
		if code != 0 {
			return errors.New(stderr)
		}
		return nil
	}
	// images are those of the pods with a label, which all run as the account.
	images := func(app string, want ...string) {
		t.Helper()
		eventually(t, func() error {
			stdout, stderr, code := a.command(t, "", "kubectl", "get", "pods", "-n", a.namespace, "-l", "app="+app, "-o",
				`jsonpath={range .items[?(@.spec.serviceAccountName=="cart")]}{.spec.containers[0].image} {end}`)
			if code != 0 {
				return errors.New(stderr)
			}
			got := strings.Fields(stdout)
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("%s: pods of %q, want %q", app, got, want)
			}
			return nil
		})
	}
	must := func(who, stdin string, args ...string) {
		t.Helper()
		if err := kubectl(who, stdin, args...); err != nil {
			t.Fatalf("%s as %s: %v", strings.Join(args, " "), who, err)
		}
	}
	refused := func(args ...string) {
		t.Helper()
		if err := kubectl(a.jane, "", args...); err == nil || !strings.Contains(err.Error(), "credence access grant -n "+a.namespace+" -- "+a.jane+" cart") {
			t.Errorf("%s without the right: %v", strings.Join(args, " "), err)
		}
	}
	observed := func(object string) { // the controller has made a revision of the template as it is now, and makes the next pod of it
		t.Helper()
		eventually(t, func() error {
			stdout, stderr, _ := a.command(t, "", "kubectl", "get", object, "-n", a.namespace, "-o", "jsonpath={.metadata.generation} {.status.observedGeneration}")
			if now, seen, _ := strings.Cut(stdout, " "); now == "" || now != seen {
				return fmt.Errorf("generation %s, observed is %s %s", now, seen, stderr)
			}
			return nil
		})
	}
	manifest := func(kind, name, more string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":%q},"spec":{"replicas":1,%s"selector":{"matchLabels":{"app":%q}},"template":{"metadata":{"labels":{"app":%q}},"spec":%s}}}`, kind, name, more, name, name, specWith("cart"))
	}
	must(a.joe, manifest("Deployment", "web", `"strategy":{"type":"Recreate"},`), "create", "-f", "-")
	images("web", "one")
	refused("set", "image", "deployment/web", "c=mine")
	must(a.joe, "", "set", "image", "deployment/web", "c=two")
	images("web", "two")
	refused("rollout", "undo", "deployment/web")
	refused("rollout", "restart", "deployment/web")
	must(a.joe, "", "rollout", "undo", "deployment/web")
	images("web", "one")
	must(a.jane, "", "scale", "deployment/web", "--replicas=3")
	images("web", "one", "one", "one")

	must(a.joe, manifest("StatefulSet", "db", `"serviceName":"db","updateStrategy":{"type":"OnDelete"},`), "create", "-f", "-")
	images("db", "one")
	must(a.joe, "", "set", "image", "statefulset/db", "c=two")
	observed("statefulset/db") // before, there is no revision to go back to
	refused("rollout", "undo", "statefulset/db")
	must(a.jane, "", "delete", "pod", "db-0", "--now")
	images("db", "two")
	must(a.joe, "", "rollout", "undo", "statefulset/db")
	observed("statefulset/db")
	must(a.jane, "", "delete", "pod", "db-0", "--now")
	images("db", "one")
	must(a.jane, "", "scale", "statefulset/db", "--replicas=2")

	must(a.joe, strings.Replace(manifest("DaemonSet", "log", ""), `"replicas":1,`, "", 1), "create", "-f", "-")
	observed("daemonset/log")
	refused("set", "image", "daemonset/log", "c=mine")
	must(a.joe, "", "set", "image", "daemonset/log", "c=two")
	observed("daemonset/log")
	refused("rollout", "undo", "daemonset/log")
	refused("rollout", "restart", "daemonset/log")
	must(a.joe, "", "rollout", "undo", "daemonset/log")
	if image := a.must(t, "", "kubectl", "get", "daemonset", "log", "-n", a.namespace, "-o", "jsonpath={.spec.template.spec.containers[0].image}"); image != "one" {
		t.Errorf("the DaemonSet that was rolled back has image %q", image)
	}
}

// A template that was replaced comes back to no user without the right: by no annotation, and by no old ReplicaSet. Users have credence:developer, and
// the controllers of Kubernetes go on.
func TestOldTemplatesStayAway(t *testing.T) {
	inTurn(t)
	a := newAccountUse(t, shared, "enforce")
	dev := a.namespace + "-dev"
	a.bind(t, a.namespace, "credence:developer", user(dev))
	as := func(who string, args ...string) error {
		t.Helper()
		_, stderr, code := a.command(t, "", "kubectl", append([]string{"--as", who, "-n", a.namespace}, args...)...)
		if code != 0 {
			return errors.New(stderr)
		}
		return nil
	}
	manifest := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":%s}}}`, specWith("cart"))
	a.create(t, "deployments", manifest)
	accounts := func(want ...string) error {
		got := strings.Fields(a.must(t, "", "kubectl", "get", "pods", "-n", a.namespace, "-l", "app", "-o", `jsonpath={range .items[*]}{.spec.serviceAccountName}/{.spec.containers[0].image} {end}`))
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("pods of %q, want %q", got, want)
		}
		return nil
	}
	eventually(t, func() error { return accounts("cart/one") })
	old := strings.TrimSpace(a.must(t, "", "kubectl", "get", "replicasets", "-n", a.namespace, "-o", "name"))
	// The right is withdrawn: an admin moves the workload to another account.
	a.must(t, "", "kubectl", "patch", "deployment", "web", "-n", a.namespace, "--type=merge", "-p", `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null},"template":{"spec":{"serviceAccountName":"default","serviceAccount":"default","containers":[{"name":"c","image":"two"}]}}}}`)
	eventually(t, func() error { return accounts("default/two") })
	eventually(t, func() error { return as(dev, "label", "deployment", "web", "a=b", "--overwrite") })
	for what, args := range map[string][]string{
		"an annotation":      {"annotate", "deployment", "web", "deprecated.deployment.rollback.to=1"},
		"an old ReplicaSet":  {"patch", old, "--type=merge", "-p", `{"metadata":{"ownerReferences":null,"labels":{"app":"other"}},"spec":{"replicas":2}}`},
		"its scale":          {"scale", old, "--replicas=2"},
		"a pause":            {"rollout", "pause", "deployment/web"},
		"its template":       {"rollout", "undo", "deployment/web"},
		"another controller": {"patch", old, "--type=merge", "-p", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"y","uid":"y","controller":true}]}}`},
	} {
		if err := as(dev, args...); err == nil || !strings.Contains(err.Error(), "credence access grant -n "+a.namespace+" -- "+dev) {
			t.Errorf("%s: %v, want a refusal with the command that gives the right", what, err)
		}
	}
	expect(t, as(dev, "scale", "deployment/web", "--replicas=2"), "scale what has one template")
	eventually(t, func() error { return accounts("default/two", "default/two") })
	a.must(t, "", "kubectl", "rollout", "undo", "deployment/web", "-n", a.namespace)
	eventually(t, func() error { return accounts("cart/one", "cart/one") })
	// A Deployment is deleted alone: the garbage collector takes the owner off its ReplicaSets.
	expect(t, as(dev, "delete", "deployment", "web", "--cascade=orphan"), "delete a Deployment alone")
	eventually(t, func() error {
		if owners := a.must(t, "", "kubectl", "get", old, "-n", a.namespace, "-o", "jsonpath={.metadata.ownerReferences}"); owners != "" {
			return fmt.Errorf("%s is owned by %s", old, owners)
		}
		return nil
	})
	if err := as(dev, "scale", old, "--replicas=5"); err == nil {
		t.Error("an old ReplicaSet without an owner grows")
	}
}
