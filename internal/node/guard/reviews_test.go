package guard_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/node/guard"
	"github.com/credence-id/credence/test/testkit"
)

// fakeReviewer gives one verdict on all pods, or an error.
type fakeReviewer struct {
	mu      sync.Mutex
	asked   []identityv1alpha1.NodeReviewSpec
	verdict identityv1alpha1.NodeReviewStatus
	err     error
}

func (f *fakeReviewer) Review(ctx context.Context, spec identityv1alpha1.NodeReviewSpec) (identityv1alpha1.NodeReviewStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, bounded := ctx.Deadline(); !bounded {
		return identityv1alpha1.NodeReviewStatus{}, errors.New("the review may take forever")
	}
	f.asked = append(f.asked, spec)
	return f.verdict, f.err
}

// answers sets the next answers, and forgets the specs.
func (f *fakeReviewer) answers(verdict identityv1alpha1.NodeReviewStatus, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.verdict, f.err = nil, verdict, err
}

func (f *fakeReviewer) mustHave(t *testing.T, asked ...identityv1alpha1.NodeReviewSpec) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(asked, f.asked); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

var (
	allowed = identityv1alpha1.NodeReviewStatus{Allowed: true, Containers: []string{"first", "main"}}
	held    = identityv1alpha1.NodeReviewStatus{Reason: "runAsNonRoot: has nothing"}
	errAway = errors.New("connection refused")
)

// newReviewed returns a guard whose pods of the API are reviewed. The runtime has the pod uid.
func newReviewed(t *testing.T, file string, f *fakeReviewer) *world {
	t.Helper()
	config := nodeFiles(t, guard.Restricted, "")
	config.Reviews, config.Unreviewed, config.Verdicts = f, []string{"credence-system"}, file
	w := newWorld(t, config)
	w.runtime.pods = []string{uid}
	return w
}

func verdictsFile(t *testing.T) string { return filepath.Join(t.TempDir(), "verdicts.json") }

// named is a container of the pod of the API.
func named(name string) *runtime.CreateContainerRequest {
	c := container("api")
	c.Config.Metadata.Name = name
	return c
}

func specOf(container string) identityv1alpha1.NodeReviewSpec {
	return identityv1alpha1.NodeReviewSpec{Namespace: "kube-system", Name: "proxy-node-1", UID: uid, Container: container}
}

// One verdict is for all containers that it names, while the API is away and by the next guard, too.
func TestVerdictsAreKept(t *testing.T) {
	file, f := verdictsFile(t), &fakeReviewer{verdict: allowed}
	w := newReviewed(t, file, f)
	testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), named("main"))))
	if diff := cmp.Diff(named("main"), w.created(t), protocmp.Transform()); diff != "" {
		t.Errorf("what the runtime is given (-want +got):\n%s", diff)
	}
	f.mustHave(t, specOf("main"))
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	f.answers(held, errAway)
	for _, guard := range []*world{w, newReviewed(t, file, f)} {
		for _, name := range []string{"main", "first"} {
			if _, err := guard.kubelet.CreateContainer(t.Context(), named(name)); err != nil {
				t.Errorf("container %s: %v", name, err)
			}
		}
	}
	f.mustHave(t)
	after := newReviewed(t, file, f)
	_, err := after.kubelet.CreateContainer(t.Context(), named("debug"))
	after.mustRefuse(t, err, codes.Unavailable, `pod kube-system/proxy-node-1: credence-node guard creates container "debug" only when the API has reviewed the pod, and it has not: connection refused`)
	f.mustHave(t, specOf("debug"))
}

// A pod that is held has the reason in the answer to its kubelet. Calls that stop go on, and the next review counts.
func TestPodsThatAreHeld(t *testing.T) {
	for name, test := range map[string]struct {
		verdict identityv1alpha1.NodeReviewStatus
		err     error
		code    codes.Code
		reason  string
	}{
		"denied":   {held, nil, codes.PermissionDenied, ": runAsNonRoot: has nothing"},
		"API away": {allowed, errAway, codes.Unavailable, "connection refused"},
		"no word":  {identityv1alpha1.NodeReviewStatus{}, nil, codes.PermissionDenied, "holds"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeReviewer{verdict: test.verdict, err: test.err}
			w := newReviewed(t, verdictsFile(t), f)
			for range 2 {
				_, err := w.kubelet.CreateContainer(t.Context(), named("main"))
				w.mustRefuse(t, err, test.code, "pod kube-system/proxy-node-1: credence-node guard ", `container "main"`, test.reason)
			}
			_, err := w.kubelet.RestorePod(t.Context(), &runtime.RestorePodRequest{Config: sandbox("api")})
			w.mustRefuse(t, err, test.code, "its containers", test.reason)
			f.mustHave(t, specOf("main"), specOf("main"), specOf(""))
			testkit.Expect(t, testkit.Err(w.kubelet.StopContainer(t.Context(), &runtime.StopContainerRequest{ContainerId: "c"})), "stop")
			f.answers(allowed, nil)
			testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), named("main"))))
		})
	}
}

// Pods that the API and Credence need to start are not reviewed.
func TestPodsThatAreNotReviewed(t *testing.T) {
	f := &fakeReviewer{verdict: held}
	w := newReviewed(t, verdictsFile(t), f)
	w.runtime.live = func(s *runtime.PodSandboxStatus) { s.Metadata.Namespace = "credence-system" }
	testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), named("main"))))
	f.mustHave(t)
}

// The sandbox counts as the runtime has it: a verdict on a pod is for no container in the sandbox of another one.
func TestSandboxesOfOtherPods(t *testing.T) {
	f := &fakeReviewer{verdict: allowed}
	w := newReviewed(t, verdictsFile(t), f)
	testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), named("main"))))
	f.answers(held, nil)
	w.runtime.live = func(s *runtime.PodSandboxStatus) { s.Metadata.Uid = "of another one" }
	if _, err := w.kubelet.CreateContainer(t.Context(), named("main")); err == nil {
		t.Error("created")
	}
	asked := specOf("main")
	asked.UID = "of another one"
	f.mustHave(t, asked)
}

// A verdict lasts as long as its pod.
func TestVerdictsAreForgotten(t *testing.T) {
	f := &fakeReviewer{verdict: allowed}
	w := newReviewed(t, verdictsFile(t), f)
	create := func(uid string) {
		t.Helper()
		w.runtime.live = func(s *runtime.PodSandboxStatus) { s.Metadata.Uid = uid }
		testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), named("main"))))
	}
	w.runtime.pods = []string{"a", "b"}
	create("a")
	create("b")
	f.answers(allowed, nil)
	create("a")
	f.mustHave(t)
	w.runtime.pods = []string{"b", "c"}
	create("c")
	create("b")
	create("a")
	if len(f.asked) != 2 || f.asked[0].UID != "c" || f.asked[1].UID != "a" {
		t.Errorf("%+v, want c, and a that was gone", f.asked)
	}
}

// A file that other users could have written gives no verdicts, and no other one than verdicts.
func TestVerdictsOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		mode    os.FileMode
	}{
		"damaged":           {`{"` + uid + `":["main"`, 0o600},
		"of another kind":   {`["main"]`, 0o600},
		"nothing":           {`null`, 0o600},
		"writable by users": {`{"` + uid + `":["main"]}`, 0o622},
	} {
		t.Run(name, func(t *testing.T) {
			file, f := verdictsFile(t), &fakeReviewer{verdict: held}
			testkit.Must(t, os.WriteFile(file, []byte(test.content), 0o600))
			testkit.Must(t, os.Chmod(file, test.mode))
			w := newReviewed(t, file, f)
			_, err := w.kubelet.CreateContainer(t.Context(), named("main"))
			w.mustRefuse(t, err, codes.PermissionDenied, "holds")
			f.answers(allowed, nil)
			testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), named("main"))))
		})
	}
}

// A file that can't be written delays nothing: the verdict is in memory.
func TestVerdictsThatCannotBeWritten(t *testing.T) {
	f := &fakeReviewer{verdict: allowed}
	w := newReviewed(t, filepath.Join(t.TempDir(), "none", "verdicts.json"), f)
	for range 2 {
		testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), named("main"))))
	}
	f.mustHave(t, specOf("main"))
}

// A credential spec is reviewed as the runtime is to have it, and no other one is by the same verdict.
func TestCredentialSpecsAreReviewed(t *testing.T) {
	f := &fakeReviewer{verdict: allowed}
	w := newReviewed(t, verdictsFile(t), f)
	with := func(contents string) *runtime.CreateContainerRequest {
		c := named("main")
		c.Config.Windows = &runtime.WindowsContainerConfig{SecurityContext: &runtime.WindowsContainerSecurityContext{CredentialSpec: contents}}
		return c
	}
	asked := specOf("main")
	asked.CredentialSpec = `{"Sid":"a"}`
	for range 2 {
		testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), with(asked.CredentialSpec))))
	}
	f.mustHave(t, asked)
	f.answers(held, nil)
	if _, err := w.kubelet.CreateContainer(t.Context(), with(`{"Sid":"b"}`)); err == nil {
		t.Error("another credential spec is created by the verdict on the first one")
	}
}

// So is that of a sandbox, which a pod without one has unreviewed.
func TestCredentialSpecsOfSandboxesAreReviewed(t *testing.T) {
	f := &fakeReviewer{verdict: held}
	w := newReviewed(t, verdictsFile(t), f)
	config := sandbox("api")
	testkit.Must(t, testkit.Err(w.kubelet.RunPodSandbox(t.Context(), &runtime.RunPodSandboxRequest{Config: config})))
	f.mustHave(t)
	asked := specOf("")
	asked.CredentialSpec = `{"Sid":"a"}`
	config.Windows = &runtime.WindowsPodSandboxConfig{SecurityContext: &runtime.WindowsSandboxSecurityContext{CredentialSpec: asked.CredentialSpec}}
	for what, call := range map[string]func() error{
		"run": func() error {
			_, err := w.kubelet.RunPodSandbox(t.Context(), &runtime.RunPodSandboxRequest{Config: config})
			return err
		},
		"restored": func() error {
			_, err := w.kubelet.RestorePod(t.Context(), &runtime.RestorePodRequest{Config: config})
			return err
		},
	} {
		f.answers(held, nil)
		if err := call(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("a sandbox whose pod is held is %s: %v", what, err)
		}
		f.mustHave(t, asked)
	}
	f.answers(allowed, nil)
	testkit.Expect(t, testkit.Err(w.kubelet.RunPodSandbox(t.Context(), &runtime.RunPodSandboxRequest{Config: config})))
}
