package usernames

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

var resource = accounts.SchemeGroupVersion.WithResource("serviceaccountprofiles")

// profile is a profile of namespace shop, made at a second, with a username.
func profile(t *testing.T, name string, second int64, username string) *unstructured.Unstructured {
	t.Helper()
	content := testkit.Need(runtime.DefaultUnstructuredConverter.ToUnstructured(&accounts.ServiceAccountProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: accounts.SchemeGroupVersion.String(), Kind: "ServiceAccountProfile"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(second, 0)},
		Status:     accounts.ServiceAccountProfileStatus{Username: username},
	}))(t)
	return &unstructured.Unstructured{Object: content}
}

func follow(t *testing.T, refused error, objects ...runtime.Object) (*Follower, *fake.FakeDynamicClient) {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "ServiceAccountProfileList"}, objects...)
	if refused != nil {
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
	}
	f := testkit.Need(New(client, slog.New(slog.DiscardHandler)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return f, client
}

func synced(t *testing.T, f *Follower) {
	t.Helper()
	testkit.Eventually(t, "profiles have been read", f.informer.HasSynced)
}

func TestUsername(t *testing.T) {
	f, client := follow(t, nil,
		profile(t, "cart", 1, "cart@x"), profile(t, "late", 2, "CART@x"), profile(t, "none", 1, ""),
		profile(t, "forged", 1, "system:masters"), profile(t, "gone", 1, "gone@x"))
	synced(t, f)
	// The watch does not show it: the profile is looked up live.
	client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch name := action.(clienttesting.GetAction).GetName(); name {
		case "gone":
			return true, nil, apierrors.NewNotFound(resource.GroupResource(), name)
		case "none":
			t.Error("a profile without a username was looked up live")
		}
		return false, nil, nil
	})
	for name, want := range map[string]string{"cart": "cart@x", "late": "", "none": "", "forged": "", "gone": "", "unheardof": ""} {
		if got, err := f.Username(t.Context(), "shop", name); got != want || err != nil {
			t.Errorf("account %s has the username %q: %v, want %q", name, got, err, want)
		}
	}
	client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	if got, err := f.Username(t.Context(), "shop", "cart"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("an API that does not answer: %q, %v", got, err)
	}
	if got, err := f.Username(t.Context(), "shop", "unheardof"); got != "" || err != nil {
		t.Errorf("an account without a profile: %q, %v", got, err)
	}
}

// Where profiles can't be read, it is not known that an account has none. A cluster without the kind has none.
func TestUsernamesThatAreNotKnown(t *testing.T) {
	forbidden := apierrors.NewForbidden(resource.GroupResource(), "", errors.New("no"))
	f, _ := follow(t, forbidden)
	if _, err := f.Username(t.Context(), "shop", "cart"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("profiles that can't be read: %v", err)
	}
	missing := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}}
	f, _ = follow(t, missing)
	testkit.Eventually(t, "no account has a username", func() bool {
		name, err := f.Username(t.Context(), "shop", "cart")
		return name == "" && err == nil
	})
}
