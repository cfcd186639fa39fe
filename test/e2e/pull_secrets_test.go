package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/deploy"
)

const (
	registryUser    = "system:serviceaccount:credence-system:credence-registry"
	registryBinding = "credence:registry:secrets"
)

// pullSecret is a Secret that is to have the passwords of registries, as a manifest has it.
func pullSecret(name, namespace, identity, registries string) *corev1.Secret {
	secret := tokenSecret(name, namespace, identity)
	secret.Type = corev1.SecretTypeDockerConfigJson
	secret.Annotations[v1alpha1.AnnotationRegistries] = registries
	return secret
}

// bindRegistry lets credence-registry have the Secrets of a namespace.
func (p plane) bindRegistry(t *testing.T, namespace string) {
	t.Helper()
	must(t, errOf(p.client(t).RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: registryBinding},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: registryBinding},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "credence-registry", Namespace: installation}},
	}, metav1.CreateOptions{})))
}

// keepPasswords runs credence-registry as its service account.
func (p plane) keepPasswords(t *testing.T, registries string, arguments ...string) {
	t.Helper()
	var log bytes.Buffer
	command := exec.CommandContext(t.Context(), program("credence-registry"), append(arguments, "--kubeconfig", p.kubeconfigOf(t, "credence-registry"), "--registries", registries)...)
	command.Stderr = &log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait() // its context is done by now
		if t.Failed() {
			t.Logf("credence-registry:\n%s", log.String())
		}
		if strings.Contains(log.String(), "eyJ") {
			t.Error("a token is in the log of credence-registry")
		}
	})
}

// loginOf is the user name and the password of a registry in a config.json.
func loginOf(content []byte, images string) (username, password string, err error) {
	var file struct {
		Auths map[string]struct{ Auth []byte }
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return "", "", err
	}
	username, password, found := strings.Cut(string(file.Auths[images].Auth), ":")
	if !found {
		return "", "", fmt.Errorf("no login of %s in %d bytes", images, len(content))
	}
	return username, password, nil
}

// pullSecrets has pods run a private image by a Secret with passwords, which is not renewed
// any more once the user on whose behalf it is filled may not use the identity. A volume has the same passwords.
func pullSecrets(t *testing.T, p plane, r *privateRegistry, registries string) {
	p.install(t, deploy.Registry)
	namespace := p.namespace(t)
	p.enable(t, namespace)
	p.letAgent(t, namespace)
	r.trust(t, p)
	r.push(t, "team/pulled", busyboxImage(t, "pulled"))
	r.letPull(p.create(t, namespace, "puller", "generic", "registry").Status.Sub, "team/pulled")
	jane := p.admin(t, namespace, "jane")
	p.letUse(t, namespace, "jane")
	p.bindRegistry(t, namespace)
	p.keepPasswords(t, registries)

	eventually(t, func() error {
		_, err := jane.CoreV1().Secrets(namespace).Create(t.Context(), pullSecret("pull", namespace, "puller", r.address), metav1.CreateOptions{})
		return err
	})
	secrets := p.client(t).CoreV1().Secrets(namespace)
	awaitLogin := func(secret, images string) {
		t.Helper()
		eventually(t, func() error {
			got, err := secrets.Get(t.Context(), secret, metav1.GetOptions{})
			if err != nil {
				return err
			}
			username, password, err := loginOf(got.Data[corev1.DockerConfigJsonKey], images)
			if err == nil && !r.mayPull(t, "team/pulled", username, password) {
				err = errors.New("the registry refuses the password")
			}
			return err
		})
	}
	awaitLogin("pull", r.address)
	pod := func(name, secret string) *corev1.Pod {
		pod := imagePod(name, "default", r.address+"/team/pulled:v1", corev1.PullAlways)
		if secret != "" {
			pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}}
		}
		return pod
	}
	p.createPod(t, namespace, pod("without", ""))
	p.createPod(t, namespace, pod("with", "pull"))
	p.waitForLog(t, namespace, "with", "runs")
	p.waitNotPulled(t, namespace, "without")

	// A volume has a config.json beside the token.
	p.userOf(t, namespace, "web", "puller")
	writer := identityPod("writer", "puller", 1000, nil)
	writer.Spec.Volumes[0].CSI.VolumeAttributes[v1alpha1.VolumeAttributeRegistries] = r.address
	writer.Spec.Containers[0].Command = []string{"/busybox", "sh", "-c", "/busybox cat /id/config.json; echo; while true; do /busybox sleep 1; done"}
	p.createPod(t, namespace, writer)
	p.waitForLog(t, namespace, "writer", "auths")
	username, password, err := loginOf([]byte(p.must(t, "", "kubectl", "-n", namespace, "logs", "writer")), r.address)
	if err != nil || !r.mayPull(t, "team/pulled", username, password) {
		t.Errorf("the registry refuses the password of the volume: %v", err)
	}

	// A manifest that is applied again takes nothing away. Passwords that are taken out are made again, while the right is there.
	empty := []byte(`{"data":{".dockerconfigjson":"` + base64.StdEncoding.EncodeToString([]byte("{}")) + `"}}`)
	must(t, errOf(secrets.Patch(t.Context(), "pull", types.MergePatchType, empty, metav1.PatchOptions{})))
	awaitLogin("pull", r.address)
	must(t, p.client(t).RbacV1().RoleBindings(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	p.letAgent(t, namespace)
	p.bindRegistry(t, namespace)
	eventually(t, func() error {
		must(t, errOf(secrets.Patch(t.Context(), "pull", types.MergePatchType, empty, metav1.PatchOptions{})))
		events, err := p.client(t).CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=UseDenied,involvedObject.name=pull"})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Source.Component == "credence-registry" && strings.HasPrefix(e.Message, "jane, on whose behalf the Secret is filled, may no longer use the WorkloadIdentity "+namespace+"/puller") {
				return nil
			}
		}
		return errors.New("credence-registry has written no Event of jane's missing right")
	})
	got, err := secrets.Get(t.Context(), "pull", metav1.GetOptions{})
	must(t, err)
	if _, _, err := loginOf(got.Data[corev1.DockerConfigJsonKey], r.address); err == nil {
		t.Error("passwords were made without the right")
	}
	p.createPod(t, namespace, pod("late", "pull"))
	p.waitNotPulled(t, namespace, "late")
}

// TestWhatCredenceRegistryMayWrite takes the part of a credence-registry that an attacker has taken over.
func TestWhatCredenceRegistryMayWrite(t *testing.T) {
	inTurn(t)
	shared.install(t, deploy.Registry)
	namespace := shared.namespace(t)
	shared.enable(t, namespace)
	root, attacker := shared.client(t), shared.clientAs(t, registryUser, agentGroup, agentGroup+":credence-system")
	secrets := attacker.CoreV1().Secrets(namespace)
	for _, where := range []string{"credence-system", "kube-system", namespace, ""} {
		if err := list(t, attacker, where); !apierrors.IsForbidden(err) {
			t.Errorf("it lists the Secrets of %q, which no admin has bound: %v", where, err)
		}
	}
	create := func(secret *corev1.Secret) {
		t.Helper()
		eventually(t, func() error {
			_, err := root.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
			return err
		})
	}
	create(pullSecret("pull", namespace, "puller", "registry.example.com"))
	_, err := root.CoreV1().Secrets(namespace).Create(t.Context(), pullSecret("empty", namespace, "puller", ""), metav1.CreateOptions{})
	refused(t, "a Secret that lists no registry", err, `Secret "empty"`, v1alpha1.AnnotationRegistries+": names no registry")
	create(tokenSecret("token", namespace, "puller"))
	unlisted := pullSecret("unlisted", namespace, "puller", "")
	delete(unlisted.Annotations, v1alpha1.AnnotationRegistries)
	unlisted.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")}
	create(unlisted)
	foreign := pullSecret("foreign", namespace, "puller", "registry.example.com")
	foreign.Labels, foreign.Data = nil, map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")}
	create(foreign)
	shared.bindRegistry(t, namespace)
	const passwords = `{"data":{".dockerconfigjson":"e30="},"metadata":{"annotations":{"` + v1alpha1.AnnotationRegistriesInputs + `":"x","` + v1alpha1.AnnotationRegistriesRenewTimestamp + `":"2026-01-02T03:04:05Z"}}}`
	// The policy is in force when it refuses; RBAC allows it.
	eventually(t, func() error {
		if err := patch(t, secrets, "token", passwords); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("the policy does not decide yet: %w", err)
		}
		return nil
	})
	allowed(t, "passwords", patch(t, secrets, "pull", passwords))
	for _, name := range []string{"token", "unlisted", "foreign"} {
		refused(t, "passwords into the Secret "+name, patch(t, secrets, name, passwords), "and no others")
	}
	patchRefused(t, secrets, "pull", map[string]string{
		"a token":               `{"data":{"token":"eA=="}}`,
		"another key":           `{"data":{"config":"eA=="}}`,
		"a key as text":         `{"stringData":{"other":"x"}}`,
		"a label":               `{"metadata":{"labels":{"x":"y"}}}`,
		"no label":              `{"metadata":{"labels":{"` + v1alpha1.LabelPurpose + `":null}}}`,
		"another identity":      `{"metadata":{"annotations":{"` + v1alpha1.AnnotationName + `":"other"}}}`,
		"other registries":      `{"metadata":{"annotations":{"` + v1alpha1.AnnotationRegistries + `":"evil.example.com"}}}`,
		"another user":          `{"metadata":{"annotations":{"` + v1alpha1.AnnotationRequester + `":"root"}}}`,
		"a request for a token": `{"metadata":{"annotations":{"` + v1alpha1.AnnotationOperation + `":"` + v1alpha1.OperationRenewToken + `"}}}`,
		"an owner":              `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`,
		"a finalizer":           `{"metadata":{"finalizers":["e2e.example.com/x"]}}`,
		"an immutable Secret":   `{"immutable":true}`,
	}, "credence")
	_, err = secrets.Get(t.Context(), "pull", metav1.GetOptions{})
	refused(t, "reading one Secret by name", err)
	_, err = secrets.Create(t.Context(), pullSecret("new", namespace, "puller", "registry.example.com"), metav1.CreateOptions{})
	refused(t, "a new Secret", err)
	refused(t, "deleting a Secret", secrets.Delete(t.Context(), "pull", metav1.DeleteOptions{}))
	for _, where := range []string{"credence-system", "kube-system", ""} {
		if err := list(t, attacker, where); !apierrors.IsForbidden(err) {
			t.Errorf("it lists the Secrets of %q: %v", where, err)
		}
	}
	if got := do(t, shared.as(t, registryUser, agentGroup), "POST", tokenPath(namespace, "puller"), "application/json", `{}`); got.Code != 403 {
		t.Errorf("it has a token: %d %s", got.Code, got.Body)
	}
}
