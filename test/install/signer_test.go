package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// externalSigner is a pod that holds the keys, by a socket on the node.
type externalSigner struct {
	pod    *corev1.Pod
	client kubernetes.Interface
	socket string // its path on the node
}

// signer starts one, in the part that a plugin of a KMS has.
func (p *partial) signer(t *testing.T, i *installation) *externalSigner {
	t.Helper()
	const user = 65532 // of the chart's pods: a socket is for one user alone
	folder := filepath.Join(i.folder, "signer")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, user, user); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "signer"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &externalSigner{client: p.client, socket: filepath.Join(folder, "run", "socket"), pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "signer", Namespace: "signer"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext:              &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user)},
			Containers: []corev1.Container{{
				Name: "signer", Image: i.registry + "/credence-server:" + i.tag,
				Args:         []string{"signer", "--issuer=" + issuer, "--keys-dir=/signer/keys", "--socket=/signer/run/socket"},
				VolumeMounts: []corev1.VolumeMount{{Name: "signer", MountPath: "/signer"}},
			}},
			Volumes: []corev1.Volume{{Name: "signer", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}},
		},
	}}
	s.start(t)
	return s
}

func (s *externalSigner) start(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error { // the account of the namespace is made meanwhile
		_, err := s.client.CoreV1().Pods(s.pod.Namespace).Create(ctx, s.pod, metav1.CreateOptions{})
		return err
	})
	eventually(t, func(context.Context) error {
		_, err := os.Stat(s.socket)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, state(t, s.client, s.pod.Namespace))
		}
		return err
	})
}

// replace deletes the pod, and starts another with the same keys.
func (s *externalSigner) replace(t *testing.T) {
	t.Helper()
	pods := s.client.CoreV1().Pods(s.pod.Namespace)
	if err := pods.Delete(t.Context(), s.pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if _, err := pods.Get(ctx, s.pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the signer is there: %v", err)
		}
		return nil
	})
	s.start(t)
}

// tokenRequested requests a token of the identity app.
func tokenRequested(client kubernetes.Interface, namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := client.CoreV1().RESTClient().Post().AbsPath("/apis/authentication.gardener.cloud/v1alpha1/namespaces/" + namespace + "/workloadidentities/app/token").
			Body([]byte(`{"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "TokenRequest", "spec": {}}`)).DoRaw(ctx)
		if err != nil {
			err = fmt.Errorf("request a token: %w\n%s", err, answer)
		}
		return err
	}
}
