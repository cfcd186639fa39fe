package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	events, err := p.client(t).CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
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

// TestTokenSecret follows one Secret of the document through its life.
func TestTokenSecret(t *testing.T) {
	inTurn(t)
	identities, namespace := shared.namespace(t), shared.namespace(t)
	shared.enable(t, namespace)
	root := shared.client(t).CoreV1().Secrets(namespace)
	shared.awsIdentity(t, identities, "banana", "dev")
	secret := tokenSecret("cloudprovider", identities, "banana")
	secret.Labels["team"], secret.Data = "fruit", map[string][]byte{"theirs": []byte("kept")}
	if _, err := root.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The agent has no right to this namespace's identities yet.
	shared.awaitWarning(t, namespace, "Secret/cloudprovider", "credence:agent:identities", identities)
	shared.letAgent(t, identities)

	got, first := shared.awaitToken(t, namespace, "cloudprovider", nil)
	if !strings.HasPrefix(first.Subject, "gardener.cloud:workloadidentity:"+identities+":banana:") || first.Kube != nil {
		t.Errorf("the token is %+v", first)
	}
	wantFile := "[default]\nrole_arn=arn:aws:iam::112233445566:role/dev\nweb_identity_token_file=/var/run/workload-identity/aws/token\n"
	if string(got.Data["credentialsFile"]) != wantFile {
		t.Errorf("credentialsFile is %q, want the document's, byte for byte: %q", got.Data["credentialsFile"], wantFile)
	}
	wantConfig := "apiVersion: aws.authentication.gardener.cloud/v1alpha1\niamRoleARN: arn:aws:iam::112233445566:role/dev\nkind: Config\n"
	if string(got.Data["config"]) != wantConfig || got.Labels[v1alpha1.LabelProvider] != "aws" {
		t.Errorf("config is %q, labels are %v", got.Data["config"], got.Labels)
	}
	if string(got.Data["theirs"]) != "kept" || got.Labels["team"] != "fruit" {
		t.Errorf("what others wrote is gone: %v %v", got.Data, got.Labels)
	}
	renewAt, err := time.Parse(time.RFC3339, got.Annotations[v1alpha1.AnnotationRenewTimestamp])
	if expiry := time.Unix(first.Expiry, 0); err != nil || renewAt.Before(expiry.Add(-25*time.Minute)) || renewAt.After(expiry.Add(-11*time.Minute)) {
		t.Errorf("renewed at %s, %v; it expires at %s", renewAt, err, expiry)
	}

	// Changes of the identity follow at once.
	shared.patchIdentity(t, identities, "banana", fmt.Sprintf(`{"spec":{"targetSystem":{"providerConfig":`+awsConfig+`}}}`, "prod"))
	eventually(t, func() error {
		if got, _ = shared.awaitToken(t, namespace, "cloudprovider", nil); !strings.Contains(string(got.Data["credentialsFile"]), "role/prod\n") {
			return fmt.Errorf("credentialsFile is %q", got.Data["credentialsFile"])
		}
		return nil
	})
	shared.patchIdentity(t, identities, "banana", `{"spec":{"audiences":["sts.amazonaws.com","second"]}}`)
	_, second := shared.awaitToken(t, namespace, "cloudprovider", func(c carried) bool { return len(c.Audience) == 2 })

	// Asked for, it is renewed, and then the annotation goes.
	if _, err := root.Patch(t.Context(), "cloudprovider", types.MergePatchType, annotate(v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	got, third := shared.awaitToken(t, namespace, "cloudprovider", func(c carried) bool { return c.ID != second.ID })
	if _, still := got.Annotations[v1alpha1.AnnotationOperation]; still {
		t.Errorf("the annotation is still there, with the token %s", third.ID)
	}
	if _, err := root.Patch(t.Context(), "cloudprovider", types.MergePatchType, []byte(`{"data":{"token":"YS5iLmM="}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, fourth := shared.awaitToken(t, namespace, "cloudprovider", func(c carried) bool { return c.ID != third.ID })
	// A valid token of the same identity that the agent has not written there is replaced, too.
	if _, err := root.Patch(t.Context(), "cloudprovider", types.StrategicMergePatchType, fmt.Appendf(nil, `{"data":{"token":%q}}`, base64.StdEncoding.EncodeToString(got.Data["token"])), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.awaitToken(t, namespace, "cloudprovider", func(c carried) bool { return c.ID != third.ID && c.ID != fourth.ID })
	_, err = root.Patch(t.Context(), "cloudprovider", types.MergePatchType, annotate(v1alpha1.AnnotationInputs, "forged"), metav1.PatchOptions{})
	refused(t, "another digest", err, "token-inputs is written by the agent")

	// The identity goes: the token stays, and an Event reports it.
	if got := do(t, shared.config(t), "DELETE", identitiesPath(identities)+"/banana", "", ""); got.Code != 200 {
		t.Fatalf("delete identity: %d %s", got.Code, got.Body)
	}
	eventually(t, func() error {
		got, err := root.Get(t.Context(), "cloudprovider", metav1.GetOptions{})
		if err == nil && (got.Annotations[v1alpha1.AnnotationOrphaned] == "" || len(got.Data["token"]) == 0) {
			err = fmt.Errorf("annotations %v, %d bytes of token", got.Annotations, len(got.Data["token"]))
		}
		return err
	})
	shared.awaitWarning(t, namespace, "Secret/cloudprovider", "IdentityMissing", "is kept until it expires")
	// And comes back as another.
	shared.awsIdentity(t, identities, "banana", "dev")
	shared.awaitToken(t, namespace, "cloudprovider", func(c carried) bool { return c.Subject != first.Subject })
}

// accountWithIdentities makes what pods with identities need, and returns their namespace: the label, the identities, the
// service account web, its right, and that of the agent.
func (p plane) accountWithIdentities(t *testing.T, identities ...string) string {
	t.Helper()
	namespace := p.namespace(t)
	p.enable(t, namespace)
	p.letAgent(t, namespace)
	p.bind(t, namespace, "credence:workloadidentities:user", rbacv1.Subject{Kind: "ServiceAccount", Name: "web", Namespace: namespace})
	for _, name := range identities {
		p.awsIdentity(t, namespace, name, name)
	}
	eventually(t, func() error {
		_, err := p.client(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Name: "web", Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: strings.Join(identities, ",")},
		}}, metav1.CreateOptions{})
		return err
	})
	return namespace
}

func podOf(account string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "busybox:1"}}},
	}
}

func TestPodGetsItsIdentity(t *testing.T) {
	t.Parallel()
	namespace := shared.accountWithIdentities(t, "banana")
	name := tokensecret.NameFor("web", "banana")
	pods := shared.client(t).CoreV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), podOf("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		environment[variable.Name] = variable.Value
	}
	if environment["AWS_ROLE_ARN"] != "arn:aws:iam::112233445566:role/banana" || environment["AWS_WEB_IDENTITY_TOKEN_FILE"] != "/var/run/secrets/workload-identity/banana/token" {
		t.Errorf("the container has %v", environment)
	}
	if len(pod.Spec.SchedulingGates) != 1 || pod.Spec.SchedulingGates[0].Name != v1alpha1.GateToken {
		t.Errorf("created with the gates %v", pod.Spec.SchedulingGates)
	}
	secret, claims := shared.awaitToken(t, namespace, name, nil)
	if claims.Kube == nil || claims.Kube.ServiceAccount.Name != "web" || !strings.Contains(string(secret.Data["credentialsFile"]), "=/var/run/secrets/workload-identity/banana/token\n") {
		t.Errorf("the claims are %+v, credentialsFile %q", claims, secret.Data["credentialsFile"])
	}
	eventually(t, func() error {
		got, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err == nil && len(got.Spec.SchedulingGates) > 0 {
			err = errors.New("the gate is still there")
		}
		return err
	})

	// No other user writes into it.
	for what, patch := range map[string]string{
		"another token": `{"data":{"token":"YS5iLmM="}}`, "one more file": `{"data":{"more":"eA=="}}`,
		"no label": `{"metadata":{"labels":{"` + v1alpha1.LabelPurpose + `":null}}}`, "no owner": `{"metadata":{"ownerReferences":null}}`,
		"immutability": `{"immutable":true}`,
		"another time": string(annotate(v1alpha1.AnnotationRenewTimestamp, "2099-01-01T00:00:00Z")),
	} {
		_, err := shared.client(t).CoreV1().Secrets(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		refused(t, what, err, "writes it alone")
	}
	if _, err := shared.client(t).CoreV1().Secrets(namespace).Patch(t.Context(), name, types.MergePatchType, annotate("note", "x"), metav1.PatchOptions{}); err != nil {
		t.Errorf("a note was refused: %v", err)
	}

	// The account requests a new token.
	accounts := shared.client(t).CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Patch(t.Context(), "web", types.MergePatchType, annotate(v1alpha1.AnnotationOperation, v1alpha1.OperationRenewToken), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		account, err := accounts.Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && account.Annotations[v1alpha1.AnnotationOperation] != "" {
			err = fmt.Errorf("the annotation is still there; Events %q", shared.warnings(t, namespace))
		}
		return err
	})
	if _, again := shared.awaitToken(t, namespace, name, nil); again.ID == claims.ID {
		t.Error("the annotation went before there was a new token")
	}

	// It does not name the identity any more, and no pod mounts it: the Secret goes.
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	if _, err := accounts.Patch(t.Context(), "web", types.MergePatchType, annotate(v1alpha1.AnnotationAccountIdentities, ""), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // a minute after it was marked
		if _, err := shared.client(t).CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret is still there: %v", err)
		}
		return nil
	})
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
		if _, err := core.ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{v1alpha1.AnnotationAccountIdentities: identities}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, "a pod with an identity that does not exist", create(podOf("lost")), "nothing-like-it", v1alpha1.AnnotationAccountIdentities)
	shared.awaitWarning(t, namespace, "ServiceAccount/lost", "IdentityMissing")
	refused(t, "a pod whose account may not use the identity", create(podOf("poor")), "kubectl create rolebinding", "poor")
	shared.awaitWarning(t, namespace, "ServiceAccount/poor", "UseDenied")
	refused(t, "a pod whose account names an identity twice", create(podOf("twice")), "twice")
	shared.awaitWarning(t, namespace, "ServiceAccount/twice", "InvalidAnnotation")

	// The token Secret of another account, in each way to get at it.
	stolen := tokensecret.NameFor("web", "banana")
	for what, steal := range map[string]func(*corev1.PodSpec){
		"volume": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: stolen}}}}
		},
		"projected volume": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: stolen}}}}}}}}
		},
		"variable": func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "T", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: stolen}, Key: "token"}}}}
		},
		"variables": func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: stolen}}}}
		},
	} {
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

// For a running pod, explain shows what the pod has of each of its identities.
func TestExplainPodThatExists(t *testing.T) {
	inTurn(t)
	namespace := shared.accountWithIdentities(t, "banana")
	const gcp = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"name":"cherry"},"spec":{"audiences":["//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/prov"],` +
		`"targetSystem":{"type":"gcp","providerConfig":{"apiVersion":"gcp.authentication.gardener.cloud/v1alpha1","kind":"Config","projectID":"my-project","workloadIdentityPoolProvider":"projects/1/locations/global/workloadIdentityPools/pool/providers/prov"}}}}`
	if got := do(t, shared.config(t), "POST", identitiesPath(namespace), "application/json", gcp); got.Code != 201 {
		t.Fatalf("create identity: %d %s", got.Code, got.Body)
	}
	core := shared.client(t).CoreV1()
	if _, err := core.ServiceAccounts(namespace).Patch(t.Context(), "web", types.MergePatchType, annotate(v1alpha1.AnnotationAccountIdentities, "banana,cherry"), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := core.Pods(namespace).Create(t.Context(), podOf("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, identity := range []string{"banana", "cherry"} {
		shared.awaitToken(t, namespace, tokensecret.NameFor("web", identity), nil)
	}
	explained := shared.explained(t, 0, []string{": admitted\n", "variable  AWS_ROLE_ARN=arn:aws:iam::112233445566:role/banana", "variable  GOOGLE_APPLICATION_CREDENTIALS=/var/run/secrets/workload-identity/cherry/credentialsConfig"},
		"pod", pod.Name, "-n", namespace)
	if strings.Contains(explained, "refused") {
		t.Errorf("explain shows an admitted pod as refused:\n%s", explained)
	}
	listed := shared.must(t, "", "credence", "get", "-n", namespace)
	for _, want := range []string{"banana", "cherry", tokensecret.NameFor("web", "cherry"), "in "} {
		if !strings.Contains(listed, want) {
			t.Errorf("get lacks %q:\n%s", want, listed)
		}
	}
}
