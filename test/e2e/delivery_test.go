package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// carried is the content of a Secret with a token.
type carried struct {
	Subject  string   `json:"sub"`
	ID       string   `json:"jti"`
	Audience []string `json:"aud"`
	Expiry   int64    `json:"exp"`
	Kube     *struct {
		ServiceAccount struct{ Name, UID string } `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// awaitToken waits until a Secret carries a token that is right, and returns both.
func (p plane) awaitToken(t *testing.T, namespace, name string, right func(carried) bool) (*corev1.Secret, carried) {
	t.Helper()
	var secret *corev1.Secret
	var claims carried
	eventually(t, func() error {
		var err error
		if secret, err = p.client(t).CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		parts := strings.Split(string(secret.Data["token"]), ".")
		if len(parts) != 3 {
			return fmt.Errorf("Secret %s has no token yet; Events: %v", name, p.warnings(t, namespace))
		}
		content, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return err
		}
		claims = carried{}
		if err := json.Unmarshal(content, &claims); err != nil {
			return err
		}
		if right != nil && !right(claims) {
			return fmt.Errorf("the token is of %s", claims.Subject)
		}
		return nil
	})
	return secret, claims
}

// warnings are the Warning Events of a namespace.
func (p plane) warnings(t *testing.T, namespace string) []string {
	t.Helper()
	events := need(p.client(t).CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{}))(t)
	var warnings []string
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			warnings = append(warnings, event.InvolvedObject.Kind+"/"+event.InvolvedObject.Name+" "+event.Reason+": "+event.Message)
		}
	}
	return warnings
}

func (p plane) awaitWarning(t *testing.T, namespace string, words ...string) {
	t.Helper()
	eventually(t, func() error {
		warnings := p.warnings(t, namespace)
	next:
		for _, warning := range warnings {
			for _, word := range words {
				if !strings.Contains(warning, word) {
					continue next
				}
			}
			return nil
		}
		return fmt.Errorf("no Event with %q among %q", words, warnings)
	})
}

const awsConfig = `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/%s"}`

// awsIdentity makes an identity of the target system AWS.
func (p plane) awsIdentity(t *testing.T, namespace, name, role string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":%q},"spec":{"audiences":["sts.amazonaws.com"],"targetSystem":{"type":"aws","providerConfig":`+awsConfig+`}}}`, name, role)
	if got := do(t, p.config(t), "POST", identitiesPath(namespace), "application/json", body); got.Code != 201 {
		t.Fatalf("create identity: %d %s", got.Code, got.Body)
	}
}

func (p plane) patchIdentity(t *testing.T, namespace, name, patch string) {
	t.Helper()
	if got := do(t, p.config(t), "PATCH", identitiesPath(namespace)+"/"+name, "application/merge-patch+json", patch); got.Code != 200 {
		t.Fatalf("patch identity: %d %s", got.Code, got.Body)
	}
}

// accountWithIdentities makes what pods with identities need, and returns their namespace: the label, the identities, the
// service account web, its right, and that of the agent.
func (p plane) accountWithIdentities(t *testing.T, identities ...string) string {
	t.Helper()
	namespace := p.namespace(t)
	p.enable(t, namespace)
	p.letAgent(t, namespace)
	for _, name := range identities {
		p.awsIdentity(t, namespace, name, name)
	}
	p.accountOf(t, namespace, "web", identities...)
	return namespace
}

// accountOf makes a service account that lists identities of its namespace, and may use them all.
func (p plane) accountOf(t *testing.T, namespace, name string, identities ...string) *corev1.ServiceAccount {
	t.Helper()
	p.bind(t, namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace})
	var made *corev1.ServiceAccount
	eventually(t, func() (err error) { // the API server learns of the label of the namespace by a watch
		made, err = p.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), account(name, identities...), metav1.CreateOptions{})
		return err
	})
	return made
}

// account is a service account that lists identities.
func account(name string, identities ...string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: strings.Join(identities, ",")}}}
}

func podOf(account string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "busybox:1"}}},
	}
}

// waysTo are the ways in which a pod names a Secret.
func waysTo(secret string) map[string]func(*corev1.PodSpec) {
	reference := corev1.LocalObjectReference{Name: secret}
	variable := corev1.EnvVar{Name: "T", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: reference, Key: "token"}}}
	volume := func(source corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
	}
	return map[string]func(*corev1.PodSpec){
		"a volume": volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}),
		"a projected volume": volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: reference}}}}}),
		"a driver":   volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "x.example.com", NodePublishSecretRef: &reference}}),
		"CephFS":     volume(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{Monitors: []string{"m"}, SecretRef: &reference}}),
		"a variable": func(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{variable} },
		"variables": func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference}}}
		},
		"an init one": func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "i", Env: []corev1.EnvVar{variable}}}
		},
		"images": func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{reference} },
	}
}

// The creator of a pod sees what keeps it from its identity.
func TestPodsThatCannotHaveTheirIdentity(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	core := shared.client(t).CoreV1()
	create := func(pod *corev1.Pod) error {
		_, err := core.Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for name, identities := range map[string]string{"lost": "nothing-like-it", "poor": "banana", "twice": "banana,banana"} {
		must(t, errOf(core.ServiceAccounts(namespace).Create(t.Context(), account(name, identities), metav1.CreateOptions{})))
	}
	refused(t, "a pod with an identity that does not exist", create(podOf("lost")), "nothing-like-it", v1alpha1.AnnotationAccountIdentities)
	shared.awaitWarning(t, namespace, "ServiceAccount/lost", "IdentityMissing")
	refused(t, "a pod whose account may not use the identity", create(podOf("poor")), "kubectl create rolebinding", "poor")
	shared.awaitWarning(t, namespace, "ServiceAccount/poor", "UseDenied")
	refused(t, "a pod whose account names an identity twice", create(podOf("twice")), "twice")
	shared.awaitWarning(t, namespace, "ServiceAccount/twice", "InvalidAnnotation")

	// The token Secret of another account, in each way to get at it.
	stolen := tokensecret.NameFor("web", "banana")
	for what, steal := range waysTo(stolen) {
		pod := podOf("default")
		steal(&pod.Spec)
		refused(t, "another account's token as "+what, create(pod), stolen)
	}
	own := podOf("web")
	own.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	own.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/var/run/secrets/workload-identity/banana"}}
	refused(t, "a volume of its own at the place of the token", create(own), "/var/run/secrets/workload-identity/banana")
	allowed(t, "a pod of an account without identities", create(podOf("default")))
}
