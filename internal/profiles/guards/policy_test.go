package guards

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/test/testkit"
	"github.com/credence-id/credence/test/testkit/policies"
)

// Fields of profiles and of pods. A value is often the same in both, and sometimes in neither.
var (
	contexts = []string{
		"runAsNonRoot: true", "runAsNonRoot: false", "runAsUser: 7", "runAsUser: 8", "runAsGroup: 7", "seccompProfile: {type: RuntimeDefault}",
		"seccompProfile: {type: Localhost, localhostProfile: a}", "appArmorProfile: {type: RuntimeDefault}", "seLinuxOptions: {level: a}",
	}
	podContexts       = append([]string{"fsGroup: 7", "fsGroup: 8", "windowsOptions: {hostProcess: true}"}, contexts...)
	containerContexts = append([]string{
		"privileged: true", "privileged: false", "allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true", "procMount: Default",
		"capabilities: {drop: [ALL]}", "capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}", "windowsOptions: {runAsUserName: x}",
	}, contexts...)
	// The fields that have names of Secrets are those of internal/admission/pods; here is one of each form that the condition knows, and some that it leaves over.
	volumes = []string{
		"emptyDir: {}", "configMap: {name: a}", "secret: {secretName: %s}", "projected: {sources: [{configMap: {name: a}}, {secret: {name: %s}}]}",
		"azureFile: {secretName: %s, shareName: a}", "csi: {driver: a, nodePublishSecretRef: {name: %s}}", "hostPath: {path: /}",
	}
	variables = []string{"env: [{name: A, value: a}, {name: B, valueFrom: {secretKeyRef: {name: %s, key: a}}}]", "envFrom: [{configMapRef: {name: a}}, {secretRef: {name: %s}}]", "env: [{name: A, value: a}]"}
	secrets   = []string{"tls", "tls", "tls", "db", "credence-token-a"}
)

// some is a few of the lines, of each field one at most.
func some(r *rand.Rand, most int, lines []string) []string {
	fields, taken := map[string]bool{}, []string{}
	for range r.IntN(most + 1) {
		line := lines[r.IntN(len(lines))]
		if field, _, _ := strings.Cut(line, ":"); !fields[field] {
			fields[field] = true
			taken = append(taken, line)
		}
	}
	return taken
}

func pick(r *rand.Rand, lines []string) string { return lines[r.IntN(len(lines))] }

// ofSecret is a line with the name of a Secret where it has one.
func ofSecret(r *rand.Rand, line string) string {
	if strings.Contains(line, "%s") {
		return fmt.Sprintf(line, pick(r, secrets))
	}
	return line
}

func object(fields []string) string { return "{" + strings.Join(fields, ", ") + "}" }

// generated is a profile, and a pod that is often as the profile wants it.
func generated(r *rand.Rand) (profile, pod string) {
	ofPod, ofContainer := some(r, 3, podContexts[:2]), some(r, 3, containerContexts[:7])
	ofPod = append(ofPod, some(r, 2, contexts)...)
	spec := []string{"securityContext: {mode: " + pick(r, []string{"Enforce", "Enforce", "Default"}) + ", pod: " + object(ofPod) + ", container: " + object(ofContainer) + pick(r, []string{"", "", "", ", windows: {hostProcess: false}"}) + "}"}
	spec = append(spec, some(r, 1, []string{"secrets: {allowed: [tls]}", "secrets: {allowed: []}", "secrets: {allowed: [tls], imagePull: [db]}"})...)
	if r.IntN(3) == 0 {
		ofPod = some(r, 3, podContexts)
	}
	var containers []string
	for i := range 1 + r.IntN(2) {
		context := ofContainer
		if r.IntN(3) == 0 {
			context = some(r, 3, containerContexts)
		}
		container := []string{fmt.Sprintf("name: c%d", i), "image: a", "securityContext: " + object(context)}
		for _, line := range some(r, 1, variables) {
			container = append(container, ofSecret(r, line))
		}
		containers = append(containers, object(container))
	}
	of := []string{"serviceAccountName: " + pick(r, []string{"cart", "cart", "cart", "till"}), "securityContext: " + object(ofPod)}
	if split := r.IntN(2); split < len(containers)-1 {
		of, containers = append(of, "initContainers: ["+containers[0]+"]"), containers[1:]
	}
	of = append(of, "containers: ["+strings.Join(containers, ", ")+"]")
	for _, line := range some(r, 1, volumes) {
		of = append(of, "volumes: [{name: a, "+ofSecret(r, line)+"}]")
	}
	of = append(of, some(r, 1, []string{"os: {name: windows}", "os: {name: linux}", "nodeSelector: {kubernetes.io/os: windows}", "imagePullSecrets: [{name: tls}]", "imagePullSecrets: [{name: db}]", "imagePullSecrets: [{}]"})...)
	return "{metadata: {name: cart, namespace: shop}, spec: " + object(spec) + "}", "{metadata: {name: p}, spec: " + object(of) + "}"
}

// The condition of the policy for pods leaves over each pod that its expressions refuse: it never decides otherwise than they do.
func TestPodsInDoubtAreAllThatAreRefused(t *testing.T) {
	shipped := policies.Shipped(t, "credence-profile-pods")
	all := shipped.DeepCopy()
	all.Spec.MatchConditions = []registrationv1.MatchCondition{{Name: "of-the-account", Expression: "params.metadata.name == object.spec.?serviceAccountName.orValue('')"}}
	quick, thorough := policies.Compile(t, shipped), policies.Compile(t, all)
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	for range 1000 {
		profile, pod := generated(r)
		param := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(profile), &param.Object); err != nil {
			t.Fatalf("%s: %v", profile, err)
		}
		request := policies.Request{User: "jane", Pod: policies.Pod(t, pod), Param: param}
		got, want := quick.Decide(request), thorough.Decide(request)
		if policies.Refused(got) != policies.Refused(want) {
			t.Fatalf("profile %s, pod %s: %+v, and without the condition %+v", profile, pod, got.Decisions, want.Decisions)
		}
		switch {
		case len(want.Decisions) == 0:
			counts["of another account"]++
		case policies.Refused(want):
			counts["refused"]++
		case len(got.Decisions) == 0:
			counts["allowed by the condition"]++
		default:
			counts["allowed after doubt"]++
		}
	}
	for _, what := range []string{"of another account", "refused", "allowed by the condition", "allowed after doubt"} {
		if counts[what] < 50 {
			t.Errorf("%d of 1000 pods are %s: too few to show something: %v", counts[what], what, counts)
		}
	}
}

// BenchmarkPolicyOfProfiles is what the evaluation costs for a pod that meets its profile, and for one of another account.
func BenchmarkPolicyOfProfiles(b *testing.B) {
	policy := policies.Compile(b, policies.Shipped(b, "credence-profile-pods"))
	param := &unstructured.Unstructured{}
	testkit.Must(b, yaml.Unmarshal([]byte(`{metadata: {name: cart, namespace: shop}, spec: {securityContext: {mode: Enforce, pod: {runAsNonRoot: true}, container: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}, secrets: {allowed: [db]}}}`), &param.Object))
	const container = `image: a, env: [{name: A, value: a}, {name: B, valueFrom: {secretKeyRef: {name: db, key: b}}}], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`
	for what, account := range map[string]string{"met": "cart", "another": "till"} {
		request := policies.Request{User: "jane", Param: param, Pod: policies.Pod(b, `{metadata: {name: p}, spec: {serviceAccountName: `+account+`, securityContext: {runAsNonRoot: true}, volumes: [{name: a, emptyDir: {}}], containers: [{name: a, `+container+`}, {name: b, `+container+`}]}}`)}
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if policies.Refused(policy.Decide(request)) {
					b.Fatal("refused")
				}
			}
		})
	}
}
