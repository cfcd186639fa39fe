package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/clientcertificate"
	"github.com/credence-id/credence/internal/credential/workloadidentity"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeapi"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

// approver is a Terminal whose person does what the source prompts for, or something else, with kubectl.
type approver struct {
	t        *testing.T
	plane    plane
	instead  string // the verb instead of approve
	requests []string
}

var approveCommand = regexp.MustCompile(`kubectl certificate approve (credence-[0-9a-f]+)`)

func (a *approver) Notice(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	a.t.Log(text)
	asked := approveCommand.FindStringSubmatch(text)
	if asked == nil || slices.Contains(a.requests, asked[1]) {
		return
	}
	a.requests = append(a.requests, asked[1])
	verb := "approve"
	if a.instead != "" {
		verb = a.instead
	}
	a.plane.must(a.t, "", "kubectl", "certificate", verb, asked[1])
}

func (*approver) OpenURL(string) error { return errors.New("there is no browser") }

func (p plane) access(t *testing.T) kubeconfig.Access {
	t.Helper()
	access, err := kubeconfig.Choice{Path: p.Kubeconfig, Environment: os.Getenv, Program: program("credence")}.Read()
	if err != nil {
		t.Fatal(err)
	}
	return access
}

func (p plane) certificateSource(t *testing.T, user string, groups ...string) *clientcertificate.Source {
	t.Helper()
	source, err := clientcertificate.New(clientcertificate.Settings{
		User: user, Groups: groups, Duration: 10 * time.Minute, Wait: 5 * time.Minute, Now: time.Now,
		Pause: credential.Pause,
	}, p.access(t), kubeapi.Certificates)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func provider(t *testing.T, terminal credential.Terminal) *credential.Provider {
	return &credential.Provider{Folder: filepath.Join(t.TempDir(), "cache"), Now: time.Now, Terminal: terminal, Margin: -1}
}

// takenFor is whom the API server takes a caller for.
func takenFor(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

func TestCredentialSourceClientCertificate(t *testing.T) {
	inTurn(t)
	info := credential.ExecInfo{APIVersion: credential.V1, Interactive: true}
	person := &approver{t: t, plane: shared}
	source := shared.certificateSource(t, "jane", "developers", "ops")
	provider := provider(t, person)
	got, err := provider.Serve(t.Context(), source, info)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(got.Expires); left <= 0 || left > 11*time.Minute {
		t.Errorf("expires in %s", left)
	}
	config := rest.AnonymousClientConfig(shared.config(t))
	config.CertData, config.KeyData = got.CertificatePEM, []byte(got.KeyPEM.Reveal())
	if user := takenFor(t, config); user.Username != "jane" || !slices.Contains(user.Groups, "developers") || !slices.Contains(user.Groups, "ops") {
		t.Errorf("the API server takes it for %s of %q", user.Username, user.Groups)
	}
	if again, err := provider.Serve(t.Context(), source, info); err != nil || !again.KeyPEM.Equal(got.KeyPEM) || len(person.requests) != 1 {
		t.Errorf("not kept: %v, requests %q", err, person.requests)
	}
}

func TestCredentialSourceDeniedCertificate(t *testing.T) {
	inTurn(t)
	person := &approver{t: t, plane: shared, instead: "deny"}
	_, err := provider(t, person).Serve(t.Context(), shared.certificateSource(t, "mallory"), credential.ExecInfo{APIVersion: credential.V1, Interactive: true})
	if !errors.Is(err, credential.ErrRefused) || !strings.Contains(err.Error(), "was denied") {
		t.Errorf("got %v", err)
	}
	// A group that the API server itself does not accept.
	_, err = provider(t, person).Serve(t.Context(), shared.certificateSource(t, "mallory", "system:masters"), credential.ExecInfo{APIVersion: credential.V1, Interactive: true})
	if !errors.Is(err, credential.ErrRefused) || !strings.Contains(err.Error(), "system:masters") || len(person.requests) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestCredentialSourceWorkloadIdentity(t *testing.T) {
	inTurn(t)
	namespace := shared.namespace(t)
	identity := shared.create(t, namespace, "deployer", "kubernetes", "https://cluster.example")
	source := func(name string) *workloadidentity.Source {
		source, err := workloadidentity.New(workloadidentity.Settings{Name: name, Namespace: namespace, Duration: 15 * time.Minute}, shared.access(t), kubeapi.Tokens)
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	terminal := &approver{t: t, plane: shared}
	info := credential.ExecInfo{APIVersion: credential.V1}
	got, err := provider(t, terminal).Serve(t.Context(), source("deployer"), info)
	if err != nil {
		t.Fatal(err)
	}
	_, claims := claims(t, got.Token.Reveal())
	if claims["sub"] != identity.Status.Sub || claims["exp"] != float64(got.Expires.Unix()) {
		t.Errorf("claims %v, expires %s", claims, got.Expires)
	}
	if _, err := provider(t, terminal).Serve(t.Context(), source("missing"), info); !errors.Is(err, credential.ErrRefused) || !strings.Contains(err.Error(), "kubectl get workloadidentities -n "+namespace) {
		t.Errorf("got %v", err)
	}
}
