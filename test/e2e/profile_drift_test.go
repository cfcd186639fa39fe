package e2e_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// quickDrift are arguments of credence-server profiles that make a minute five seconds.
var quickDrift = []string{"--drift-interval=2s", "--drift-pace=5s"}

// newQuickPlane is a plane that looks at pods with these.
func newQuickPlane(t *testing.T) plane {
	t.Helper()
	var args []string
	for _, argument := range quickDrift {
		args = append(args, "--arg", "profiles="+argument)
	}
	return newPlane(t, args...)
}

// Several tests of what is done about pods that have drifted share a plane with a quick pace.
func TestPlaneActionsOnDrift(t *testing.T) {
	first(t, ofPlane, 2)
	p := newQuickPlane(t)
	for name, test := range map[string]func(*testing.T, plane){
		"profiles change": profilesChange, "restarts stop": restartsStop, "restarts of another account": restartsOfAnotherAccount, "DaemonSets restart": daemonSetsRestart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// drifting is a namespace whose account web has a profile and an identity, and whose pods become ready when the test makes them so: there is no kubelet.
type drifting struct {
	plane
	namespace string
	ready     atomic.Bool
}

func newDrifting(t *testing.T, p plane, profile string) *drifting {
	t.Helper()
	d := &drifting{plane: p, namespace: p.accountWithIdentities(t, "store")}
	d.ready.Store(true)
	eventually(t, func() error {
		if code, answer := (profileWriters{plane: p, namespace: d.namespace}).send(t, "", "POST", "?", jsonBody, profileOf("web", profile)); code != 201 {
			return fmt.Errorf("%d %s", code, answer)
		}
		return nil
	})
	return d
}

// replicas makes a ReplicaSet of the account.
func (d *drifting) replicas(t *testing.T, n int32) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	pod := podOf("web")
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
	}}
	need(d.client(t).AppsV1().ReplicaSets(d.namespace).Create(t.Context(), set, metav1.CreateOptions{}))(t)
}

// pods are those of the ReplicaSet, by name. While pods become ready, those that are not are made so.
func (d *drifting) pods(t *testing.T) (names []string, err error) {
	t.Helper()
	pods := d.client(t).CoreV1().Pods(d.namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, err
	}
	const running = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	for i := range list.Items {
		pod := &list.Items[i]
		names = append(names, pod.Name)
		if d.ready.Load() && pod.Status.Phase != corev1.PodRunning {
			if _, err := pods.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(running), metav1.PatchOptions{}, "status"); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// awaitStatus waits until the status of the profile is right.
func (d *drifting) awaitStatus(t *testing.T, what string, right func(status accounts.ServiceAccountProfileStatus, inSpec metav1.Condition) bool) {
	t.Helper()
	eventually(t, func() error {
		if _, err := d.pods(t); err != nil {
			return err
		}
		got := do(t, d.config(t), "GET", "/apis/accounts.credence.dev/v1alpha1/namespaces/"+d.namespace+"/serviceaccountprofiles/web", "", "")
		var profile accounts.ServiceAccountProfile
		if err := json.Unmarshal(got.Body, &profile); err != nil {
			return err
		}
		inSpec := meta.FindStatusCondition(profile.Status.Conditions, accounts.ConditionInSpec)
		if profile.Status.Pods == nil || inSpec == nil || !right(profile.Status, *inSpec) {
			return fmt.Errorf("want %s, have %s", what, got.Body)
		}
		return nil
	})
}

func outOfSpec(total, drifted int32, reason string) func(accounts.ServiceAccountProfileStatus, metav1.Condition) bool {
	return func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return s.Pods.Total == total && s.Pods.OutOfSpec == drifted && c.Reason == reason && (c.Status == metav1.ConditionTrue) == (drifted == 0)
	}
}

func (d *drifting) changeRole(t *testing.T, role string) {
	t.Helper()
	d.patchIdentity(t, d.namespace, "store", fmt.Sprintf(`{"spec":{"targetSystem":{"providerConfig":`+awsConfig+`}}}`, role))
}

// A changed identity is reported in the status of the profile, with an Event, and nothing is evicted.
func TestDriftIsReported(t *testing.T) {
	t.Parallel()
	d := newDrifting(t, shared, `{}`)
	d.replicas(t, 2)
	d.awaitStatus(t, "two pods in spec", outOfSpec(2, 0, "PodsInSpec"))
	before := need(d.pods(t))(t)
	d.changeRole(t, "other")
	d.awaitStatus(t, "two pods out of spec", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(2, 2, "PodsOutOfSpec")(s, c) && len(s.Pods.First) == 2 && s.Pods.First[0].Name == before[0] &&
			s.Pods.First[0].Field == "spec.containers[c].env[AWS_ROLE_ARN].value" && strings.HasSuffix(s.Pods.First[0].Wants, "role/other") &&
			strings.Contains(c.Message, "credence drift -n "+d.namespace)
	})
	d.awaitEvent(t, "PodsOutOfSpec")
	d.changeRole(t, "store")
	d.awaitStatus(t, "two pods in spec again", outOfSpec(2, 0, "PodsInSpec"))
	d.awaitEvent(t, "PodsInSpec")
	if after, err := d.pods(t); err != nil || !slices.Equal(before, after) {
		t.Errorf("pods %s became %s (%v)", before, after, err)
	}
}

func (d *drifting) awaitEvent(t *testing.T, reason string) {
	t.Helper()
	eventually(t, func() error {
		events, err := d.client(t).CoreV1().Events(d.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=ServiceAccountProfile,reason=" + reason})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("no Event %s", reason)
		}
		return err
	})
}

// Pods are evicted one by one: not while a budget holds them, nor while a new one is not ready, whatever is killed; and never a pod without a
// controller.
func TestPlaneDriftEvicts(t *testing.T) {
	first(t, ofPlane, 2)
	p := newQuickPlane(t)
	d := newDrifting(t, p, `{"onChange":"Evict"}`)
	d.replicas(t, 2)
	need(p.client(t).CoreV1().Pods(d.namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{}))(t)
	release := d.hold(t)
	d.awaitStatus(t, "three pods in spec", outOfSpec(3, 0, "PodsInSpec"))
	before := need(d.pods(t))(t)
	d.changeRole(t, "other")
	d.awaitStatus(t, "three pods out of spec", outOfSpec(3, 3, "EvictingPods"))
	d.awaitHeld(t)
	if now, err := d.pods(t); err != nil || !slices.Equal(before, now) {
		t.Fatalf("the budget did not hold: %s became %s (%v)", before, now, err)
	}
	d.ready.Store(false)
	release()
	d.awaitEvicted(t, before, 1)
	d.awaitEvent(t, "PodEvicted")

	// Its successor does not become ready, and another replica leads meanwhile.
	p.killLeader(t)
	d.awaitStatus(t, "the next leader waits for it", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(3, 2, "EvictionsStopped")(s, c) && strings.Contains(c.Message, "no more pods are evicted until new ones are ready: ReplicaSet web has 1 of 2 pods ready")
	})
	d.awaitEvicted(t, before, 1)
	d.ready.Store(true)
	d.awaitEvicted(t, before, 2)
	d.awaitStatus(t, "the pod without a controller is left", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(3, 1, "PodsOutOfSpec")(s, c) && strings.Contains(c.Message, "are not evicted: make them anew")
	})
}

// hold has a budget allow no disruption of the pods, until release is called.
func (d *drifting) hold(t *testing.T) (release func()) {
	t.Helper()
	budgets := d.client(t).PolicyV1().PodDisruptionBudgets(d.namespace)
	need(budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}, metav1.CreateOptions{}))(t)
	return func() {
		t.Helper()
		must(t, budgets.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	}
}

// awaitHeld waits until a budget has held a pod.
func (d *drifting) awaitHeld(t *testing.T) {
	t.Helper()
	config := rest.AnonymousClientConfig(d.onPort(t, healthPorts["profiles"]))
	config.BearerToken = d.metricsReader(t, d.plane.namespace(t))
	held := regexp.MustCompile(`(?m)^credence_profiles_evictions_total{result="budget"} [1-9]`)
	eventually(t, func() error {
		if got := do(t, config, "GET", "/metrics", "", ""); !held.Match(got.Body) {
			return fmt.Errorf("no metric that matches %s, code %d", held, got.Code)
		}
		return nil
	})
}

// awaitEvicted waits until so many of the first pods are gone, and as many new ones are there.
func (d *drifting) awaitEvicted(t *testing.T, first []string, gone int) {
	t.Helper()
	eventually(t, func() error {
		now, err := d.pods(t)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(first), func(name string) bool { return !slices.Contains(now, name) })
		if len(left) < len(first)-gone {
			return fatal{fmt.Errorf("%s of %s are left, want %d evicted", left, first, gone)}
		}
		if len(left) > len(first)-gone || len(now) != len(first) {
			return fmt.Errorf("pods are %s, were %s", now, first)
		}
		return nil
	})
}

// A profile that is changed while pods of its account run does what its onChange is, and new pods are as it wants them.
func profilesChange(t *testing.T, p plane) {
	for action, test := range map[accounts.OnChange]struct {
		during   string // the reason of the condition
		replaces bool
	}{
		accounts.OnChangeReport:   {"PodsOutOfSpec", false},
		accounts.OnChangeBlockNew: {"PodsOutOfSpec", false},
		accounts.OnChangeRestart:  {"RestartingWorkloads", true},
		accounts.OnChangeEvict:    {"EvictingPods", true},
	} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			d := newDrifting(t, p, `{"onChange":"`+string(action)+`"}`)
			d.deploy(t, "web")
			d.awaitStatus(t, "two pods in spec", outOfSpec(2, 0, "PodsInSpec"))
			before := need(d.pods(t))(t)
			release := d.hold(t)
			if code, answer := (profileWriters{plane: p, namespace: d.namespace}).send(t, "", "PATCH", "/web?", mergePatch, `{"spec":{"securityContext":{"pod":{"runAsUser":7}}}}`); code != 200 {
				t.Fatalf("%d %s", code, answer)
			}
			d.awaitStatus(t, "two pods out of spec", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
				return outOfSpec(2, 2, test.during)(s, c) && s.Pods.First[0].Field == "spec.securityContext.runAsUser" && s.Pods.First[0].Wants == "7"
			})
			weaker := podOf("web")
			weaker.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}
			if _, err := d.client(t).CoreV1().Pods(d.namespace).Create(t.Context(), weaker, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); apierrors.IsForbidden(err) != (action == accounts.OnChangeBlockNew) {
				t.Errorf("a new pod that is weaker than the profile: %v", err)
			}
			d.awaitEvent(t, test.during)
			release()
			if !test.replaces {
				if after, err := d.pods(t); err != nil || !slices.Equal(before, after) {
					t.Errorf("pods %s became %s (%v)", before, after, err)
				}
				return
			}
			d.awaitStatus(t, "two pods in spec again", outOfSpec(2, 0, "PodsInSpec"))
			list := need(d.client(t).CoreV1().Pods(d.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"}))(t)
			for i := range list.Items {
				if pod := &list.Items[i]; ptr.Deref(pod.Spec.SecurityContext.RunAsUser, 0) != 7 {
					t.Errorf("pod %s is left: %v", pod.Name, pod.Spec.SecurityContext)
				}
			}
		})
	}
}
