package cri_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Each place has distinct values: names as "name-of-<place>;", contents as
// {"contents":"of-<place>;"}.
func nameOf(place string) string     { return "name-of-" + place + ";" }
func contentsOf(place string) string { return fmt.Sprintf(`{"contents":"of-%s;"}`, place) }

// generated is a pod whose containers have gMSAs of their own, or the pod's, or none.
func generated(random *rand.Rand) *corev1.PodSpec {
	pod := &corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: string(corev1.Windows)}}
	if options := account(random, "pod"); options != nil {
		pod.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: options}
	}
	own := func(name string) corev1.Container {
		c := corev1.Container{Name: name}
		if options := account(random, name); options != nil {
			c.SecurityContext = &corev1.SecurityContext{WindowsOptions: options}
		}
		return c
	}
	for i := range random.IntN(3) {
		pod.InitContainers = append(pod.InitContainers, own(fmt.Sprintf("init-%d", i)))
	}
	for i := range 1 + random.IntN(3) {
		pod.Containers = append(pod.Containers, own(fmt.Sprintf("regular-%d", i)))
	}
	for i := range random.IntN(3) {
		c := own(fmt.Sprintf("ephemeral-%d", i))
		pod.EphemeralContainers = append(pod.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, SecurityContext: c.SecurityContext},
		})
	}
	return pod
}

func account(random *rand.Rand, place string) *corev1.WindowsSecurityContextOptions {
	options := &corev1.WindowsSecurityContextOptions{}
	switch random.IntN(5) {
	case 0:
		return nil
	case 1:
		options.RunAsUserName = new("user-of-" + place)
	case 2:
		options.GMSACredentialSpecName = new(nameOf(place))
	default:
		options.GMSACredentialSpecName, options.GMSACredentialSpec = new(nameOf(place)), new(contentsOf(place))
	}
	return options
}

// whose is the place that a container must have its account from, or "", and whether the contents are missing there.
func whose(pod *corev1.PodSpec, place string, own *corev1.SecurityContext) (from string, missing bool) {
	if own != nil && own.WindowsOptions != nil && own.WindowsOptions.GMSACredentialSpecName != nil {
		return place, own.WindowsOptions.GMSACredentialSpec == nil
	}
	if pod.SecurityContext != nil && pod.SecurityContext.WindowsOptions.GMSACredentialSpecName != nil {
		return "pod", pod.SecurityContext.WindowsOptions.GMSACredentialSpec == nil
	}
	return "", false
}

// Whatever a pod looks like: each container and the sandbox get the one credential spec that is theirs; of
// no other container's, and of no name, is there a trace.
func TestCredentialSpecsStayApart(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	with, without := 0, 0
	for range 500 {
		pod := generated(random)
		got := handOver(t, pod, images{})
		from, missing := whose(pod, "pod", nil)
		check(t, "pod", from, missing, got.Sandbox)
		for place, own := range contexts(pod) {
			from, missing := whose(pod, place, own)
			check(t, place, from, missing, got.Containers[place])
			if from != "" && !missing {
				with++
			} else {
				without++
			}
		}
		if t.Failed() {
			t.Fatalf("%+v", pod)
		}
	}
	if with < 100 || without < 100 {
		t.Errorf("%d containers with an account and %d without are too few", with, without)
	}
}

func check(t *testing.T, place, from string, missing bool, got told) {
	t.Helper()
	if missing {
		if !strings.Contains(got.Refused, nameOf(from)) || got.CRI != nil {
			t.Errorf("%s has a name without contents, and gets %+v", place, got)
		}
		return
	}
	var message struct {
		CredentialSpec string `json:"credentialSpec"`
	}
	if err := json.Unmarshal(got.CRI, &message); err != nil {
		t.Fatalf("%s: %v, refused %q", place, err, got.Refused)
	}
	want := ""
	if from != "" {
		want = contentsOf(from)
	}
	if message.CredentialSpec != want {
		t.Errorf("CRI gives %s %q, want %q", place, message.CredentialSpec, want)
	}
	if strings.Contains(string(got.CRI), "name-of-") {
		t.Errorf("%s gets a name: %s", place, got.CRI)
	}
	specs := 0
	if from != "" {
		specs = 1
	}
	if n := strings.Count(string(got.CRI), "contents"); n != specs {
		t.Errorf("%s gets %d credential specs, want %d: %s", place, n, specs, got.CRI)
	}
}
