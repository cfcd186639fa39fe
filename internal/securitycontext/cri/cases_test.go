package cri_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/securitycontext"
	"github.com/credence-id/credence/internal/securitycontext/cri"
)

var update = flag.Bool("update", false, "write testdata/*/want.yaml anew")

// images is images.yaml of a case: the users of images, by container.
type images struct {
	Containers map[string]user `json:"containers,omitempty"`
}

type user struct {
	UID  *int64 `json:"uid,omitempty"`
	Name string `json:"name,omitempty"`
}

func (u user) image() cri.ImageUser { return cri.ImageUser{UID: u.UID, Name: u.Name} }

// handover is want.yaml of a case: the messages of a kubelet.
type handover struct {
	Sandbox    told            `json:"sandbox"`
	Containers map[string]told `json:"containers"`
}

type told struct {
	CRI     json.RawMessage `json:"cri,omitempty"`
	Refused string          `json:"refused,omitempty"`
}

// The node of all cases.
var node = cri.Node{SeccompFolder: "/var/lib/kubelet/seccomp", SeccompDefault: true, MaskedPaths: []string{"/sys/devices/system/cpu/cpu0/thermal_throttle"}}

func TestCases(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			pod, users := load(t, dir)
			before := pod.DeepCopy()
			content, err := yaml.Marshal(handOver(t, &pod.Spec, users))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("the pod that was passed in was changed:\n%s", diff)
			}
			want := filepath.Join(dir, "want.yaml")
			if *update {
				if err := os.WriteFile(want, content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(read(t, want)), string(content)); diff != "" {
				t.Errorf("hand-over (-want +got):\n%s", diff)
			}
		})
	}
}

func isWindows(pod *corev1.PodSpec) bool {
	return pod.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows)
}

// contexts are the security contexts of all containers, by their names.
func contexts(pod *corev1.PodSpec) map[string]*corev1.SecurityContext {
	all := map[string]*corev1.SecurityContext{}
	for _, c := range pod.InitContainers {
		all[c.Name] = c.SecurityContext
	}
	for _, c := range pod.Containers {
		all[c.Name] = c.SecurityContext
	}
	for _, c := range pod.EphemeralContainers {
		all[c.Name] = c.SecurityContext
	}
	return all
}

func handOver(t testing.TB, pod *corev1.PodSpec, users images) handover {
	t.Helper()
	result := handover{Containers: map[string]told{}}
	if isWindows(pod) {
		result.Sandbox = messageOf(t)(cri.WindowsSandbox(pod, securitycontext.Effective))
	} else {
		result.Sandbox = messageOf(t)(cri.LinuxSandbox(pod, node))
	}
	for name, own := range contexts(pod) {
		c := cri.Container{Name: name, Effective: securitycontext.Effective(pod.SecurityContext, own), Image: users.Containers[name].image()}
		if isWindows(pod) {
			result.Containers[name] = messageOf(t)(cri.WindowsContainer(c))
		} else {
			result.Containers[name] = messageOf(t)(cri.LinuxContainer(pod, c, node))
		}
	}
	return result
}

// messageOf is a message, or the error in its place.
func messageOf(t testing.TB) func(proto.Message, error) told {
	return func(message proto.Message, err error) told {
		t.Helper()
		if err != nil {
			return told{Refused: err.Error()}
		}
		return told{CRI: text(t, message)}
	}
}

func text(t testing.TB, message proto.Message) json.RawMessage {
	t.Helper()
	content, err := protojson.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func cases(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func load(t testing.TB, dir string) (*corev1.Pod, images) {
	t.Helper()
	var (
		pod   corev1.Pod
		users images
	)
	for file, into := range map[string]any{"pod.yaml": &pod, "images.yaml": &users} {
		if err := yaml.UnmarshalStrict(read(t, filepath.Join(dir, file)), into); err != nil {
			t.Fatalf("%s: %v", filepath.Join(dir, file), err)
		}
	}
	return &pod, users
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
