package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	protocol "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// imageRequest is what a kubelet writes for an image of a pod.
func (p plane) imageRequest(t *testing.T, pod *corev1.Pod, image, identity string) string {
	t.Helper()
	request := protocol.CredentialProviderRequest{Image: image, ServiceAccountToken: p.podToken(t, pod), ServiceAccountAnnotations: map[string]string{v1alpha1.AnnotationImagePullIdentity: identity}}
	request.APIVersion, request.Kind = protocol.SchemeGroupVersion.String(), "CredentialProviderRequest"
	return string(jsonOf(t, request))
}

// A registry takes what the program prints for the identity of a pod's account: the token itself, or what it is exchanged for. It is for that
// repository alone, and nothing is printed for identities that the account may not use.
func TestPlaneImageCredentials(t *testing.T) {
	first(t, 0, 0) // on the shared plane, but make test builds no registry
	registry := startRegistry(t)
	registry.trust(t, shared)
	for _, repository := range []string{"direct/app", "exchanged/app"} {
		registry.push(t, repository, busyboxImage(t, "private"))
	}
	namespace := shared.namespace(t)
	for _, name := range []string{"direct", "exchanged"} {
		registry.letPull(shared.create(t, namespace, name, "generic", "registry").Status.Sub, name+"/app")
	}
	shared.create(t, namespace, "other-audience", "generic", "other")
	store := strings.Replace(identityJSON("store", "aws", "registry"), `"type":"aws"`, `"type":"aws","providerConfig":{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:minio:iam:::role/app","endpoint":"https://minio.example.com"}`, 1)
	must(t, do(t, shared.config(t), "POST", identitiesPath(namespace), "application/json", store).is(201))
	shared.userOf(t, namespace, "web", "direct", "exchanged", "other-audience", "store")
	shared.userOf(t, namespace, "stranger")
	node := shared.nodeObject(t)
	web, stranger := shared.podOn(t, namespace, "web", "web", node.Name), shared.podOn(t, namespace, "stranger", "stranger", node.Name)

	registries := filepath.Join(t.TempDir(), "registries.yaml")
	settings := fmt.Sprintf(`registries:
- {images: %[1]s/direct, audiences: [registry], exchange: token-server}
- {images: 112233445566.dkr.ecr.eu-central-1.amazonaws.com, audiences: [registry], exchange: amazon-ecr}
- {images: %[1]s/exchanged, audiences: [registry, other], exchange: token-exchange, settings: {endpoint: %[2]s/exchange, audience: %[3]s}}
`, registry.address, registry.server, registryService)
	must(t, os.WriteFile(registries, []byte(settings), 0o600))
	run := func(pod *corev1.Pod, image, identity string) (string, string, int) {
		if strings.HasPrefix(image, "/") || strings.HasPrefix(image, ".") {
			image = registry.address + image
		}
		return shared.command(t, shared.imageRequest(t, pod, image, identity), "credence-image-credentials", "--registries", registries, "--kubeconfig", shared.Kubeconfig)
	}

	for _, name := range []string{"direct", "exchanged"} {
		var auth protocol.AuthConfig
		// A right counts a moment after it was given.
		eventually(t, func() error {
			stdout, stderr, code := run(web, "/"+name+"/app", name)
			if code != 0 {
				return errors.New(stderr)
			}
			var response protocol.CredentialProviderResponse
			if err := json.Unmarshal([]byte(stdout), &response); err != nil {
				return fatal{err}
			}
			if left := response.CacheDuration.Duration; left <= 0 || left > 5*time.Minute || name == "exchanged" && left > time.Minute {
				t.Errorf("%s: credentials are kept for %s", name, left)
			}
			auth = response.Auth[registry.address+"/"+name]
			return nil
		})
		if !registry.mayPull(t, name+"/app", auth.Username, auth.Password) {
			t.Errorf("%s: the registry refuses the image", name)
		}
		for _, other := range []string{"direct", "exchanged"} {
			if other != name && registry.mayPull(t, other+"/app", auth.Username, auth.Password) {
				t.Errorf("%s: the registry gives the image of %s", name, other)
			}
		}
	}

	for name, c := range map[string]struct {
		pod             *corev1.Pod
		image, identity string
		want            string
	}{
		"an account without the right": {stranger, "/direct/app", "direct", "no token of workload identity " + namespace + "/direct: "},
		"no such identity":             {web, "/direct/app", "none", "no token of workload identity " + namespace + "/none: "},
		"another registry":             {web, ".evil.example/direct/app", "direct", "no registry of the configuration has it"},
		"a token for another registry": {web, "/direct/app", "other-audience", `the identity's token is for audience "other"`},
		// The API returns the target system: this one is not sent a token, nor is AWS.
		"another cloud's identity": {web, "112233445566.dkr.ecr.eu-central-1.amazonaws.com/app", "direct", "the identity is not of target system aws"},
		"an identity of a store":   {web, "112233445566.dkr.ecr.eu-central-1.amazonaws.com/app", "store", "the identity is for the store at https://minio.example.com"},
		"another audience":         {web, "/exchanged/app", "other-audience", registry.server + "/exchange answers 400: invalid_grant: this token is not good: "},
	} {
		stdout, stderr, code := run(c.pod, c.image, c.identity)
		if stdout != "" || code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %q, %q, exit code %d, want %q", name, stdout, stderr, code, c.want)
		}
		if strings.Contains(stderr, "eyJ") {
			t.Errorf("%s: a token is in %q", name, stderr)
		}
	}
}
