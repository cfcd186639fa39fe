package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/internal/tokensecret"
)

// visitor is a user of the shared cluster for the components of another cluster: a service account there, and the kubeconfig
// that has its token.
func (p plane) visitor(t *testing.T, name string) (rbacv1.Subject, string) {
	t.Helper()
	home := p.namespace(t)
	accounts := p.client(t).CoreV1().ServiceAccounts(home)
	must(t, errOf(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})))
	token := need(accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	config := clientcmdapi.NewConfig()
	config.Clusters["identities"] = &clientcmdapi.Cluster{Server: p.config(t).Host, CertificateAuthority: p.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "identities", AuthInfo: name}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), name+".kubeconfig")
	must(t, clientcmd.WriteToFile(*config, file))
	return rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: home}, file
}

// Identities of one cluster, Secrets and pods of another: what its agent can have is bounded where the identities are.
func TestPlaneTwoClusters(t *testing.T) {
	withPlane(t)
	garden := shared
	agent, agentConfig := garden.visitor(t, "seed-agent")
	reader, readerConfig := garden.visitor(t, "seed-webhook")
	seed := newPlane(t, "--arg", "agent=--identity-kubeconfig="+agentConfig, "--arg", "webhook=--identity-kubeconfig="+readerConfig)

	ours, theirs := garden.namespace(t), garden.namespace(t)
	for _, namespace := range []string{ours, theirs} {
		garden.awsIdentity(t, namespace, "banana", "dev")
	}
	garden.bind(t, ours, "credence:agent:identities", agent)
	garden.bind(t, ours, "credence:identity-reader", reader)

	namespace := seed.namespace(t)
	seed.enable(t, namespace)
	secrets := seed.client(t).CoreV1().Secrets(namespace)
	for name, of := range map[string]string{"ours": ours, "theirs": theirs} {
		must(t, errOf(secrets.Create(t.Context(), tokenSecret(name, of, "banana"), metav1.CreateOptions{})))
	}
	_, claims := seed.awaitToken(t, namespace, "ours", nil)
	if !strings.HasPrefix(claims.Subject, "gardener.cloud:workloadidentity:"+ours+":banana:") {
		t.Errorf("the token is of %s", claims.Subject)
	}
	// Whatever happens in its cluster, it gets no token of a namespace that it was not given.
	seed.awaitWarning(t, namespace, "Secret/theirs", "forbidden", theirs)
	if secret, err := secrets.Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil || len(secret.Data["token"]) != 0 {
		t.Errorf("the other Secret has %d bytes of token, %v", len(secret.Data["token"]), err)
	}
	for where, want := range map[string]int{ours: 201, theirs: 403} {
		got := do(t, fromFile(t, agentConfig), "POST", tokenPath(where, "banana"), "application/json", tokenRequest(`{}`))
		if got.Code != want {
			t.Errorf("a token of %s: %d %s, want %d", where, got.Code, got.Body, want)
		}
	}

	// Pods: the namespace has the same name in both clusters; tokens have no context, as the account is of another cluster.
	seed.must(t, "", "kubectl", "create", "namespace", ours)
	seed.enable(t, ours)
	seed.accountOf(t, ours, "web", "banana")
	must(t, errOf(seed.client(t).CoreV1().Pods(ours).Create(t.Context(), podOf("web"), metav1.CreateOptions{})))
	if _, claims := seed.awaitToken(t, ours, tokensecret.NameFor("web", "banana"), nil); claims.Kube != nil || !strings.HasPrefix(claims.Subject, "gardener.cloud:workloadidentity:"+ours+":banana:") {
		t.Errorf("the claims are %+v", claims)
	}

	// `use` is reviewed where the users are: rights in the identity cluster do not count here.
	mallory := seed.admin(t, namespace, "mallory")
	garden.letUse(t, ours, "mallory")
	_, err := mallory.CoreV1().Secrets(namespace).Create(t.Context(), tokenSecret("m", ours, "banana"), metav1.CreateOptions{})
	refused(t, "a Secret of one who may use the identity elsewhere only", err, "the verb use")
	// Here they are enough, for as long as they last.
	jane := seed.admin(t, namespace, "jane")
	seed.letUse(t, ours, "jane")
	eventually(t, func() error {
		_, err := jane.CoreV1().Secrets(namespace).Create(t.Context(), tokenSecret("j", ours, "banana"), metav1.CreateOptions{})
		return err
	})
	seed.awaitToken(t, namespace, "j", nil)
	must(t, seed.client(t).RbacV1().RoleBindings(ours).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	seed.renewalIsDenied(t, namespace, "j", "jane")

	t.Run("static credentials", func(t *testing.T) { staticCredentials(t, garden, seed, agent, reader, agentConfig, readerConfig) })
}
