package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/execcredential/exectest"
	"github.com/credence-id/credence/test/testkit"
)

// rootAuthority is a ConfigMap that a controller makes in every namespace.
const rootAuthority = "kube-root-ca.crt"

// execWorld is a namespace of a real cluster, and accounts that may read what is in it: one by tokens, one by certificates.
type execWorld struct {
	t         *testing.T
	cluster   *rest.Config // of the administrator
	admin     kubernetes.Interface
	folder    string // of the cluster's state
	namespace string
	began     os.FileInfo // of the audit log
	agent     string      // of the clients with credentials of a program: by it the audit log distinguishes their requests
}

func newExecWorld(t *testing.T, cluster *rest.Config, folder string) *execWorld {
	t.Helper()
	admin := need(kubernetes.NewForConfig(cluster))(t)
	log := need(os.Stat(filepath.Join(folder, "audit.log")))(t)
	w := &execWorld{t: t, cluster: cluster, admin: admin, folder: folder, began: log}
	namespace := need(admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "exec-"}}, metav1.CreateOptions{}))(t)
	w.namespace, w.agent = namespace.Name, "e2e-"+namespace.Name
	t.Cleanup(func() {
		// A cluster of the test's own may be gone.
		_ = admin.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), w.namespace, metav1.DeleteOptions{})
	})
	need(admin.CoreV1().ServiceAccounts(w.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}))(t)
	need(admin.RbacV1().RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Name: "robot", Namespace: w.namespace},
			{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: w.person()},
		},
	}, metav1.CreateOptions{}))(t)
	// The informers are to see no refusal, and one object that is in every namespace.
	reader := rest.CopyConfig(cluster)
	reader.Impersonate = rest.ImpersonationConfig{UserName: w.person()}
	as := need(kubernetes.NewForConfig(reader))(t)
	eventually(t, func() error {
		return errOf(as.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), rootAuthority, metav1.GetOptions{}))
	})
	return w
}

// robot and person are whom the API server takes the accounts for.
func (w *execWorld) robot() string  { return "system:serviceaccount:" + w.namespace + ":robot" }
func (w *execWorld) person() string { return "jane-" + w.namespace }

// token is one for the robot, of the shortest life that the API server gives. If bound names a Secret, the token ends with it.
func (w *execWorld) token(bound string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}
	if bound != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: bound}
	}
	got, err := w.admin.CoreV1().ServiceAccounts(w.namespace).CreateToken(context.Background(), "robot", request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return got.Status.Token, nil
}

// certificate is one for the person, from the authority of the API server for clients, which is valid until then; with its key.
func (w *execWorld) certificate(until time.Time) (certificate, key string, err error) {
	pki := filepath.Join(w.folder, "pki")
	authority, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	if err != nil {
		return "", "", err
	}
	issued, err := testkit.Certify(x509.Certificate{
		Subject: pkix.Name{CommonName: w.person()}, NotBefore: time.Now().Add(-time.Minute), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, &testkit.Certificate{Certificate: authority.Leaf, Key: authority.PrivateKey.(*ecdsa.PrivateKey)})
	if err != nil {
		return "", "", err
	}
	return string(issued.PEM()), string(issued.KeyPEM()), nil
}

// answerToken and answerCertificate are what a program answers with a new one, or fails with.
func (w *execWorld) answerToken(bound string, expires time.Time) exectest.Answer {
	token, err := w.token(bound)
	if err != nil {
		return exectest.Answer{ExitCode: 1, Stderr: err.Error()}
	}
	return exectest.Token(token, expires)
}

func (w *execWorld) answerCertificate(until, expires time.Time) exectest.Answer {
	certificate, key, err := w.certificate(until)
	if err != nil {
		return exectest.Answer{ExitCode: 1, Stderr: err.Error()}
	}
	return exectest.Certificate(certificate, key, expires)
}

// config is that of a client of the cluster that has its credentials from the program, by way of the pool.
func (w *execWorld) config(pool *execcredential.Pool, program execcredential.Config) *rest.Config {
	w.t.Helper()
	config := rest.AnonymousClientConfig(w.cluster)
	config.UserAgent, config.QPS = w.agent, -1
	config.ExecProvider = &api.ExecConfig{Command: program.Command, Args: program.Args, APIVersion: program.APIVersion, InteractiveMode: api.ExecInteractiveMode(program.InteractiveMode)}
	for _, variable := range program.Env {
		config.ExecProvider.Env = append(config.ExecProvider.Env, api.ExecEnvVar{Name: variable.Name, Value: variable.Value})
	}
	adapted := need(clientgo.Config(pool, config))(w.t)
	return adapted
}

func (w *execWorld) add(name string) {
	w.t.Helper()
	need(w.admin.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(w.t)
}

// requests returns the API server's audit log of the clients with credentials of a program.
func (w *execWorld) requests() []auditv1.Event {
	w.t.Helper()
	found := eventsSince(w.t, filepath.Join(w.folder, "audit.log"), w.began, w.agent)
	return slices.DeleteFunc(found, func(event auditv1.Event) bool { return event.UserAgent != w.agent })
}

// used are the credentials that the API server accepted, by their IDs of the audit log.
func (w *execWorld) used() map[string]bool {
	used := map[string]bool{}
	for _, event := range w.requests() {
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 200 {
			used[strings.Join(event.User.Extra["authentication.kubernetes.io/credential-id"], " ")] = true
		}
	}
	return used
}

// onlyAs checks that no request was made as another user, and returns how many the API server answered with 401.
func (w *execWorld) onlyAs(user string) (unauthorized int) {
	w.t.Helper()
	for _, event := range w.requests() {
		switch {
		case event.ResponseStatus != nil && event.ResponseStatus.Code == 401:
			unauthorized++
		case event.User.Username != user:
			w.t.Errorf("%s %s was made as %q", event.Verb, event.RequestURI, event.User.Username)
		}
	}
	return unauthorized
}
