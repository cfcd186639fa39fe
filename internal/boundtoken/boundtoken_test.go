package boundtoken_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/credence-id/credence/internal/boundtoken"
)

const (
	podName  = "authentication.kubernetes.io/pod-name"
	podUID   = "authentication.kubernetes.io/pod-uid"
	nodeName = "authentication.kubernetes.io/node-name"
	nodeUID  = "authentication.kubernetes.io/node-uid"
	cart     = "system:serviceaccount:shop:cart"
)

// extras are those of a token that is bound to a pod, with some changed; nil removes one.
func extras(changes map[string][]string) map[string][]string {
	all := map[string][]string{podName: {"cart-0"}, podUID: {"p"}, nodeName: {"worker-1"}, nodeUID: {"n"}}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, values []string) bool { return values == nil })
	return all
}

// caller is the caller of a token with all extras.
func caller() boundtoken.Caller {
	return boundtoken.Caller{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}, UID: "a",
		Pod: boundtoken.Object{Name: "cart-0", UID: "p"}, Node: boundtoken.Object{Name: "worker-1", UID: "n"},
	}
}

func TestCallersAreAccountsOfPods(t *testing.T) {
	noNodeUID := caller()
	noNodeUID.Node.UID = ""
	for name, test := range map[string]struct {
		user    string
		changes map[string][]string
		want    boundtoken.Caller
		refusal string
	}{
		"bound":                    {user: cart, want: caller()},
		"without a uid of a node":  {user: cart, changes: map[string][]string{nodeUID: nil}, want: noNodeUID},
		"a user":                   {user: "jane", refusal: `user "jane" is not a service account`},
		"an account without name":  {user: "system:serviceaccount:shop:", refusal: "is not a service account"},
		"an account of no place":   {user: "system:serviceaccount::cart", refusal: "is not a service account"},
		"a name of three parts":    {user: cart + ":x", refusal: "is not a service account"},
		"not bound":                {user: cart, changes: map[string][]string{podName: nil, podUID: nil}, refusal: "is not bound to a pod"},
		"no uid of a pod":          {user: cart, changes: map[string][]string{podUID: nil}, refusal: "is not bound to a pod"},
		"two pods":                 {user: cart, changes: map[string][]string{podName: {"a", "b"}}, refusal: "is not bound to a pod"},
		"a path as a pod":          {user: cart, changes: map[string][]string{podName: {"../cart-0"}}, refusal: "is not bound to a pod"},
		"a long uid of a pod":      {user: cart, changes: map[string][]string{podUID: {strings.Repeat("u", 254)}}, refusal: "is not bound to a pod"},
		"an unprintable uid":       {user: cart, changes: map[string][]string{podUID: {"a\nb"}}, refusal: "is not bound to a pod"},
		"no node":                  {user: cart, changes: map[string][]string{nodeName: nil}, refusal: "the token of pod shop/cart-0 names no node"},
		"a node that can't be one": {user: cart, changes: map[string][]string{nodeName: {"a b"}}, refusal: "names no node"},
	} {
		got, refusal := boundtoken.Read(test.user, "a", extras(test.changes))
		if diff := cmp.Diff(test.want, got); diff != "" || !strings.Contains(refusal, test.refusal) || (refusal == "") != (test.refusal == "") {
			t.Errorf("%s: refusal %q, want %q; caller (-want +got):\n%s", name, refusal, test.refusal, diff)
		}
	}
}

func TestCallerIsSubjectAndContext(t *testing.T) {
	subject := caller().Subject()
	if subject.Name != cart || subject.UID != "a" || !strings.Contains(strings.Join(subject.Groups, " "), "system:serviceaccounts:shop") {
		t.Errorf("subject %+v", subject)
	}
	object := caller().Context("b")
	if object.Kind != "ServiceAccount" || object.Namespace != "shop" || object.Name != "cart" || object.UID != "b" {
		t.Errorf("context %+v, want the account with the uid that is looked up", object)
	}
}

func TestPodsThatGetNoToken(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// deleted returns a change to a pod whose grace period ends at a time.
	deleted := func(ends time.Time, grace time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(ends))
			pod.DeletionGracePeriodSeconds = ptr.To(int64(grace / time.Second))
		}
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Phase = phase }
	}
	const late = "was deleted, and had until 2026-03-01T12:00:00Z to end"
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		fault  string
	}{
		"runs":                     {change: func(*corev1.Pod) {}},
		"pending":                  {change: phase(corev1.PodPending)},
		"ends":                     {change: deleted(now.Add(time.Second), time.Minute)},
		"has to be gone":           {change: deleted(now, time.Minute), fault: late},
		"deleted 10 minutes ago":   {change: deleted(now.Add(time.Hour), time.Hour+10*time.Minute), fault: late},
		"deleted 9:59 minutes ago": {change: deleted(now.Add(time.Hour), time.Hour+10*time.Minute-time.Second)},
		"ends after 292 years": {change: func(pod *corev1.Pod) {
			deleted(now.Add(1<<62), 0)(pod)
			pod.DeletionGracePeriodSeconds = ptr.To(int64(1 << 62))
		}, fault: "was deleted"},
		"succeeded": {change: phase(corev1.PodSucceeded), fault: "has ended: its phase is Succeeded"},
		"failed":    {change: phase(corev1.PodFailed), fault: "has ended: its phase is Failed"},
		"created again": {
			change: func(pod *corev1.Pod) { pod.UID = "q" },
			fault:  `has uid "q", and the token is of one with uid "p": it was deleted and created again`,
		},
		"another account": {
			change: func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "web" },
			fault:  `runs as service account "web", and the token is of "cart"`,
		},
		"another node": {
			change: func(pod *corev1.Pod) { pod.Spec.NodeName = "worker-2" },
			fault:  `is on node "worker-2", and the token names node "worker-1"`,
		},
		"another pod that has failed": {change: func(pod *corev1.Pod) { pod.UID = "q"; pod.Status.Phase = corev1.PodFailed }, fault: `has uid "q"`},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0", UID: "p"},
			Spec:       corev1.PodSpec{ServiceAccountName: "cart", NodeName: "worker-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		test.change(pod)
		fault, want := caller().Fault(pod, now), ""
		if test.fault != "" {
			want = "pod shop/cart-0 of the caller's token " + test.fault
		}
		if !strings.HasPrefix(fault, want) || (fault == "") != (want == "") {
			t.Errorf("%s: %q, want %q", name, fault, want)
		}
	}
	if gone := caller().Gone(); !strings.Contains(gone, "pod shop/cart-0") {
		t.Errorf("a pod that was not found: %q", gone)
	}
}
