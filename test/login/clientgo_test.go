package login_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
	"github.com/credence-id/credence/test/testkit"
)

// takenFor is whom the API server takes a client for.
func takenFor(ctx context.Context, config *rest.Config) (authenticationv1.UserInfo, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// Programs that use the same kubeconfig go on as the person who has logged in: by the plugin of client-go, and by the library.
func TestProgramsUseTheLogin(t *testing.T) {
	d := newWorkstation(t, "agree")
	before := d.provider.count(t)
	d.entry("kubernetes")
	d.wantAlice()
	for what, through := range map[string]func(*rest.Config) *rest.Config{
		"client-go": func(config *rest.Config) *rest.Config { return config },
		"execcredential": func(config *rest.Config) *rest.Config {
			pool := testkit.Need(execcredential.NewPool(execcredential.Options{}))(t)
			t.Cleanup(func() { _ = pool.Close() })
			return testkit.Need(clientgo.Config(pool, config))(t)
		},
	} {
		t.Run(what, func(t *testing.T) {
			// The program runs where the person does.
			t.Setenv("HOME", d.home)
			t.Setenv("XDG_CACHE_HOME", filepath.Join(d.home, "cache"))
			d.age(10 * time.Minute) // so that it needs a new token, and no person is there to log in
			config := testkit.Need(clientcmd.BuildConfigFromFlags("", d.kubeconfig))(t)
			user, err := takenFor(t.Context(), through(config))
			if err != nil || user.Username != "idp:alice" || !slices.Contains(user.Groups, "idp:developers") {
				t.Errorf("the API server takes the program for %s of %q, %v", user.Username, user.Groups, err)
			}
		})
	}
	if n := d.provider.since(t, before, "refresh_token"); n != 2 {
		t.Errorf("%d refreshes, want one for each program", n)
	}
	d.wantLogins(before, 1)
}
