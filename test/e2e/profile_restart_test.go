package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

const restartedAt = "kubectl.kubernetes.io/restartedAt"

// template is that of pods of the account web, which d.pods makes ready.
func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "name": name}}, Spec: podOf("web").Spec}
}

func byName(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
}

func deploymentOf(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: byName(name), Template: template(name)}}
}

func statefulSetOf(name string, strategy appsv1.StatefulSetUpdateStrategyType) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
		Selector: byName(name), Template: template(name), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy},
	}}
}

func (d *drifting) deploy(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		need(d.client(t).AppsV1().Deployments(d.namespace).Create(t.Context(), deploymentOf(name, 2), metav1.CreateOptions{}))(t)
	}
}

// restarts are the times at which the templates of Deployments were restarted, and how many templates each has had.
func (d *drifting) restarts(t *testing.T) (at map[string]string, revisions map[string]string) {
	t.Helper()
	list := need(d.client(t).AppsV1().Deployments(d.namespace).List(t.Context(), metav1.ListOptions{}))(t)
	at, revisions = map[string]string{}, map[string]string{}
	for i := range list.Items {
		at[list.Items[i].Name] = list.Items[i].Spec.Template.Annotations[restartedAt]
		revisions[list.Items[i].Name] = list.Items[i].Annotations["deployment.kubernetes.io/revision"]
	}
	return at, revisions
}

// awaitRestarted waits until those Deployments have been restarted, and none besides.
func (d *drifting) awaitRestarted(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, func() error {
		if _, err := d.pods(t); err != nil {
			return err
		}
		at, _ := d.restarts(t)
		var done []string
		for name, time := range at {
			if time != "" {
				done = append(done, name)
			}
		}
		slices.Sort(done)
		if slices.ContainsFunc(done, func(name string) bool { return !slices.Contains(names, name) }) {
			return fatal{fmt.Errorf("restarted are %s, want %s", done, names)}
		}
		if !slices.Equal(done, names) {
			return fmt.Errorf("restarted are %s, want %s", done, names)
		}
		return nil
	})
}

// Workloads are restarted one by one: not while a budget allows no disruption, and not while new pods are not ready, whatever is killed and
// whichever replica leads; each once, at the time that was recorded. Those that a restart does not help are reported.
func TestPlaneDriftRestarts(t *testing.T) {
	first(t, ofPlane, 2)
	p := newQuickPlane(t)
	d := newDrifting(t, p, `{"onChange":"Restart"}`)
	client := p.client(t)
	p.must(t, "", "kubectl", "label", "namespace", d.namespace, "identity.credence.dev/account-use=enforce")
	d.deploy(t, "a", "b")
	need(client.AppsV1().StatefulSets(d.namespace).Create(t.Context(), statefulSetOf("db", appsv1.OnDeleteStatefulSetStrategyType), metav1.CreateOptions{}))(t)
	d.replicas(t, 1)
	job := template("job")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	need(client.BatchV1().Jobs(d.namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Template: job}}, metav1.CreateOptions{}))(t)
	budgets := client.PolicyV1().PodDisruptionBudgets(d.namespace)
	need(budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "ab"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}}},
	}}, metav1.CreateOptions{}))(t)
	d.awaitStatus(t, "seven pods in spec", outOfSpec(7, 0, "PodsInSpec"))
	d.changeRole(t, "other")
	d.awaitStatus(t, "the budget holds", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(7, 7, "RestartingWorkloads")(s, c) && strings.Contains(c.Message, "once PodDisruptionBudget ab allows a disruption") && s.Restart == nil
	})
	p.awaitMetric(t, "profiles", p.metricsReader(t, p.namespace(t)), `credence_profiles_restarts_stopped 0`)
	d.awaitRestarted(t)

	// A process that was killed before it changed the template has left this. The next one restarts the same workload, at the same time.
	const recorded = "2026-01-02T03:04:05Z"
	b := need(client.AppsV1().Deployments(d.namespace).Get(t.Context(), "b", metav1.GetOptions{}))(t)
	var wants string
	d.awaitStatus(t, "the differences", func(s accounts.ServiceAccountProfileStatus, _ metav1.Condition) bool {
		if len(s.Pods.First) == 7 {
			wants = s.Pods.First[0].Field + " " + s.Pods.First[0].Wants
		}
		return wants != ""
	})
	kill(t, p.part(t, "profiles").PID)
	d.record(t, accounts.ProfileRestart{Kind: "Deployment", Name: "b", UID: b.UID, At: recorded, Wants: []string{wants}})
	d.ready.Store(false)
	must(t, budgets.Delete(t.Context(), "ab", metav1.DeleteOptions{}))
	d.awaitRestarted(t, "b")
	if at, _ := d.restarts(t); at["b"] != recorded {
		t.Errorf("restarted at %s, want %s, which was recorded", at["b"], recorded)
	}
	d.awaitEvent(t, "WorkloadRestarted")

	// Its new pods do not become ready, another replica leads, and the first one is killed in the midst.
	d.awaitStatus(t, "the restart is recorded", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && s.Restart != nil && s.Restart.Name == "b" && s.Restart.Begun
	})
	p.killLeader(t)
	d.awaitStatus(t, "the next leader waits for them", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return c.Reason == "RestartsStopped" && strings.Contains(c.Message, "no more workloads are restarted: Deployment b has 1 of 2 pods new, and 2 available")
	})
	d.awaitRestarted(t, "b")
	d.ready.Store(true)
	d.awaitRestarted(t, "a", "b")
	d.awaitStatus(t, "what no restart helps is left", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(7, 3, "PodsOutOfSpec")(s, c) && s.Restart == nil && strings.Contains(c.Message, "not restarted: StatefulSet db (its update strategy is OnDelete: delete its pods)") &&
			strings.Contains(c.Message, "2 of them are of no Deployment, StatefulSet or DaemonSet")
	})
	at, revisions := d.restarts(t)
	if at["b"] != recorded || revisions["a"] != "2" || revisions["b"] != "2" {
		t.Errorf("restarted at %s, revisions %s: want one restart of each", at, revisions)
	}
}

// killLeader has another replica of credence-server profiles lead.
func (p plane) killLeader(t *testing.T) {
	t.Helper()
	leader := func() (string, error) {
		lease, err := p.client(t).CoordinationV1().Leases("credence-system").Get(t.Context(), "credence-profiles", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
	}
	before := need(leader())(t)
	p.second(t, quickDrift...)
	kill(t, p.part(t, "profiles").PID)
	eventually(t, func() error {
		now, err := leader()
		if err == nil && (now == "" || now == before) {
			err = fmt.Errorf("%q leads, as before", now)
		}
		return err
	})
}

// record writes the record of a restart as the process does.
func (d *drifting) record(t *testing.T, restart accounts.ProfileRestart) {
	t.Helper()
	patch := need(json.Marshal(map[string]any{"apiVersion": "accounts.credence.dev/v1alpha1", "kind": "ServiceAccountProfile", "status": map[string]any{"restart": restart}}))(t)
	path := "/apis/accounts.credence.dev/v1alpha1/namespaces/" + d.namespace + "/serviceaccountprofiles/web/status?force=true&fieldManager=credence-profiles-drift"
	must(t, do(t, d.as(t, processUser), "PATCH", path, string(types.ApplyPatchType), string(patch)).is(200))
}

// A StatefulSet is restarted, too, and its pods never become ready: no other workload is, and that is reported. Once they are, the others follow.
func restartsStop(t *testing.T, p plane) {
	d := newDrifting(t, p, `{"onChange":"Restart"}`)
	need(d.client(t).AppsV1().StatefulSets(d.namespace).Create(t.Context(), statefulSetOf("a", appsv1.RollingUpdateStatefulSetStrategyType), metav1.CreateOptions{}))(t)
	d.deploy(t, "c")
	d.awaitStatus(t, "three pods in spec", outOfSpec(3, 0, "PodsInSpec"))
	d.ready.Store(false)
	d.changeRole(t, "other")
	d.awaitRestarted(t, "c")
	d.awaitStatus(t, "no more restarts", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return c.Reason == "RestartsStopped" && strings.Contains(c.Message, "no more workloads are restarted: Deployment c has 1 of 2 pods new, and 2 available")
	})
	d.awaitEvent(t, "RestartsStopped")
	set, err := d.client(t).AppsV1().StatefulSets(d.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || set.Spec.Template.Annotations[restartedAt] != "" {
		t.Errorf("%s, %v", set.Spec.Template.Annotations, err)
	}
	d.ready.Store(true)
	d.awaitStatus(t, "three pods in spec again", outOfSpec(3, 0, "PodsInSpec"))
	if set, err = d.client(t).AppsV1().StatefulSets(d.namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil || set.Spec.Template.Annotations[restartedAt] == "" {
		t.Errorf("%s, %v", set.Spec.Template.Annotations, err)
	}
}

// The pods of a DaemonSet are made anew node by node, as it is restarted. There is no kubelet: the nodes are objects alone.
func daemonSetsRestart(t *testing.T, p plane) {
	d := newDrifting(t, p, `{"onChange":"Restart"}`)
	for _, name := range []string{"node-1", "node-2"} {
		need(d.client(t).CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	}
	sets, everywhere := d.client(t).AppsV1().DaemonSets(d.namespace), template("web")
	everywhere.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // after a minute without a kubelet, nodes are tainted
	need(sets.Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{Selector: byName("web"), Template: everywhere}}, metav1.CreateOptions{}))(t)
	d.awaitStatus(t, "two pods in spec", outOfSpec(2, 0, "PodsInSpec"))
	before := need(d.pods(t))(t)
	d.ready.Store(false)
	d.changeRole(t, "other")
	d.awaitStatus(t, "the second node waits for the first", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(2, 1, "RestartsStopped")(s, c) && s.Restart != nil && s.Restart.Kind == "DaemonSet" && strings.Contains(c.Message, "DaemonSet web has 1 of 2 pods new, and 1 available")
	})
	d.awaitEvicted(t, before, 1)
	d.ready.Store(true)
	d.awaitStatus(t, "two pods in spec again", func(s accounts.ServiceAccountProfileStatus, c metav1.Condition) bool {
		return outOfSpec(2, 0, "PodsInSpec")(s, c) && s.Restart == nil
	})
	d.awaitEvicted(t, before, 2)
	set, err := sets.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || set.Generation != 2 || set.Spec.Template.Annotations[restartedAt] == "" {
		t.Errorf("generation %d, want one restart: %s, %v", set.Generation, set.Spec.Template.Annotations, err)
	}
}

// A process that was taken over restarts workloads, where profiles are applied, and changes nothing else of them.
func TestRestartGuards(t *testing.T) {
	inTurn(t)
	admin, process := shared.client(t), shared.clientAs(t, processUser)
	ctx := t.Context()
	plain, enabled, asked := shared.namespace(t), shared.namespace(t), shared.namespace(t)
	shared.must(t, "", "kubectl", "label", "namespace", enabled, asked, "identity.credence.dev/profiles=enabled")
	shared.must(t, "", "kubectl", "label", "namespace", asked, "identity.credence.dev/account-use=enforce")
	for _, namespace := range []string{plain, enabled, asked, "kube-system"} {
		deployment := deploymentOf("web", 0)
		deployment.Spec.Template.Annotations = map[string]string{"kept": "yes", restartedAt: "2026-01-02T05:03:05+02:00"} // a minute before
		if namespace == "kube-system" {
			t.Cleanup(func() { shared.must(t, "", "kubectl", "delete", "deployment", "web", "-n", namespace) })
		}
		eventually(t, func() error { // until the policies know the kinds of their parameters
			return errOf(admin.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{}))
		})
	}
	shared.must(t, "", "kubectl", "create", "serviceaccount", "web", "-n", enabled)
	set := statefulSetOf("web", appsv1.RollingUpdateStatefulSetStrategyType)
	set.Spec.Replicas = ptr.To[int32](0)
	need(admin.AppsV1().StatefulSets(enabled).Create(ctx, set, metav1.CreateOptions{}))(t)
	need(admin.AppsV1().DaemonSets(enabled).Create(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{Selector: byName("web"), Template: template("web")}}, metav1.CreateOptions{}))(t)
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "credence-profiles-drift"}
	change := func(client kubernetes.Interface, namespace, patch string) error {
		return errOf(client.AppsV1().Deployments(namespace).Patch(ctx, "web", types.MergePatchType, []byte(patch), dry))
	}
	in := func(template string) string { return `{"spec":{"template":` + template + `}}` }
	now := in(`{"metadata":{"annotations":{"` + restartedAt + `":"2026-01-02T03:04:05Z"}}}`)
	expect(t, errOf(process.AppsV1().StatefulSets(enabled).Patch(ctx, "web", types.MergePatchType, []byte(now), dry)), "the process can't do its work")
	expect(t, errOf(process.AppsV1().DaemonSets(enabled).Patch(ctx, "web", types.MergePatchType, []byte(now), dry)), "the process can't do its work")
	for _, namespace := range []string{enabled, asked} {
		expect(t, change(process, namespace, now), "the process can't do its work")
	}
	with := func(also string) string { return strings.Replace(now, `{"metadata":{`, `{`+also+`,"metadata":{`, 1) }
	for what, patch := range map[string]string{
		"another annotation":      in(`{"metadata":{"annotations":{"x":"y","` + restartedAt + `":"2026-01-02T03:04:05Z"}}}`),
		"another's annotation":    in(`{"metadata":{"annotations":{"kept":"no","` + restartedAt + `":"2026-01-02T03:04:05Z"}}}`),
		"takes an annotation off": in(`{"metadata":{"annotations":{"kept":null,"` + restartedAt + `":"2026-01-02T03:04:05Z"}}}`),
		"too early":               in(`{"metadata":{"annotations":{"` + restartedAt + `":"2026-01-02T03:04:04Z"}}}`),
		"once more":               in(`{"metadata":{"annotations":{"` + restartedAt + `":"2026-01-02T03:03:05Z"}}}`),
		"ahead of the clock":      in(`{"metadata":{"annotations":{"` + restartedAt + `":"2998-01-01T00:00:00Z"}}}`),
		"with a clock of its own": `{"metadata":{"managedFields":[{"manager":"credence-profiles-drift","operation":"Update","apiVersion":"apps/v1","time":"2999-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:` + restartedAt + `":{}}}}}}}]},"spec":{"template":{"metadata":{"annotations":{"` + restartedAt + `":"2998-01-01T00:00:00Z"}}}}}`,
		"with another's clock":    `{"metadata":{"managedFields":[{"manager":"x","operation":"Update","apiVersion":"apps/v1","time":"2999-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"template":{"metadata":{"annotations":{"` + restartedAt + `":"2998-01-01T00:00:00Z"}}}}}`,
		"with a former clock":     `{"metadata":{"managedFields":[{"manager":"credence-profiles-drift","operation":"Update","apiVersion":"apps/v1beta2","time":"2999-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"template":{"metadata":{"annotations":{"` + restartedAt + `":"2998-01-01T00:00:00Z"}}}}}`,
		"no time":                 in(`{"metadata":{"annotations":{"` + restartedAt + `":"x"}}}`),
		"nothing":                 `{}`,
		"a label":                 in(`{"metadata":{"labels":{"x":"y"},"annotations":{"` + restartedAt + `":"2026-01-02T03:04:05Z"}}}`),
		"an image":                with(`"spec":{"containers":[{"name":"c","image":"other"}]}`),
		"an account":              with(`"spec":{"serviceAccountName":"default"}`),
		"a host's network":        with(`"spec":{"hostNetwork":true}`),
		"replicas":                strings.Replace(now, `{"spec":{`, `{"spec":{"replicas":3,`, 1),
		"the strategy":            strings.Replace(now, `{"spec":{`, `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null},`, 1),
		"pauses it":               strings.Replace(now, `{"spec":{`, `{"spec":{"paused":true,`, 1),
		"a label of the object":   strings.Replace(now, `{"spec":{`, `{"metadata":{"labels":{"x":"y"}},"spec":{`, 1),
		"its annotation":          strings.Replace(now, `{"spec":{`, `{"metadata":{"annotations":{"x":"y"}},"spec":{`, 1),
		"an owner":                strings.Replace(now, `{"spec":{`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]},"spec":{`, 1),
		"a finalizer":             strings.Replace(now, `{"spec":{`, `{"metadata":{"finalizers":["example.com/x"]},"spec":{`, 1),
		"what an applier owns":    strings.Replace(now, `{"spec":{`, `{"metadata":{"managedFields":[{"manager":"x","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:securityContext":{}}}}}}]},"spec":{`, 1),
	} {
		if err := change(process, enabled, patch); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "credence-profiles-restarts") {
			t.Errorf("%s: %v", what, err)
		}
		if err := change(admin, enabled, patch); err != nil && what != "an account" {
			t.Errorf("%s, by an admin: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"where no profiles are applied": change(process, plain, now),
		"in kube-system":                change(process, "kube-system", now),
		"scales": func() error {
			return errOf(process.AppsV1().Deployments(enabled).Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), dry, "scale"))
		}(),
		"its status": func() error {
			return errOf(process.AppsV1().Deployments(enabled).Patch(ctx, "web", types.MergePatchType, []byte(`{"status":{"replicas":3}}`), dry, "status"))
		}(),
		"creates": func() error {
			return errOf(process.AppsV1().Deployments(enabled).Create(ctx, deploymentOf("x", 1), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
		}(),
		"applies a new one": func() error {
			content, err := json.Marshal(deploymentOf("x", 1))
			if err != nil {
				return err
			}
			content = []byte(strings.Replace(string(content), `{`, `{"apiVersion":"apps/v1","kind":"Deployment",`, 1))
			return errOf(process.AppsV1().Deployments(enabled).Patch(ctx, "x", types.ApplyPatchType, content, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "x"}))
		}(),
		"a ReplicaSet": func() error {
			return errOf(process.AppsV1().ReplicaSets(enabled).Patch(ctx, "x", types.MergePatchType, []byte(now), dry))
		}(),
		"a CronJob": func() error {
			return errOf(process.BatchV1().CronJobs(enabled).Patch(ctx, "x", types.MergePatchType, []byte(now), dry))
		}(),
		"deletes": process.AppsV1().Deployments(enabled).Delete(ctx, "web", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}),
		"a budget": func() error {
			return errOf(process.PolicyV1().PodDisruptionBudgets(enabled).Patch(ctx, "x", types.MergePatchType, []byte(`{}`), dry))
		}(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
