package tokenrequest

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/contexts/contextstest"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/test/testkit"
)

// interrupted are Tokens with something that happens between check and signature.
type interrupted struct {
	Tokens

	between func()
}

func (i interrupted) Sign(ctx context.Context, prepared *issuer.Prepared) (identity.Token, error) {
	i.between()
	return i.Tokens.Sign(ctx, prepared)
}

// An object that is deleted between check and signature is in the token as it was checked, and a namesake that takes its place at that moment is not. The
// next request is refused.
func TestObjectIsDeletedBeforeTheSignature(t *testing.T) {
	l := newLandscape()
	index, follower := clusters.New(&l.clusters), contexts.New(&l.kinds, l.client, contextstest.NoDeliveries{}, clock.RealClock{})
	go index.Run(t.Context())
	go follower.Run(t.Context())
	rest, _ := newREST(t, func(authorizer.Attributes) (bool, error) { return false, nil }, testRing)
	rest.Identities, rest.Bindings, rest.Clusters, rest.Objects = l.identities, l.bindings, index, follower
	ask := func() (string, error) {
		out, err := rest.Create(request.WithUser(request.WithNamespace(t.Context(), l.namespace), &l.caller), "one", &Object{Spec: v1alpha1.TokenRequestSpec{ContextObject: l.object}}, nil, &metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(out.(*Object).Status.Token, ".")[1])
		return string(payload), err
	}
	testkit.Eventually(t, "there are tokens, and the objects are watched", func() bool {
		_, err := ask()
		return err == nil && slices.ContainsFunc(l.client.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", "shoots") })
	})
	signed := rest.Tokens
	rest.Tokens = interrupted{signed, func() {
		shoots := l.client.Resource(shootResource).Namespace("fruit")
		testkit.Expect(t, shoots.Delete(t.Context(), "banana", metav1.DeleteOptions{}))
		namesake := shoot([]any{"east"}, []any{"one"}, nil)
		namesake.SetUID("uid-of-a-namesake")
		testkit.Expect(t, testkit.Err(shoots.Create(t.Context(), namesake, metav1.CreateOptions{})))
		testkit.Eventually(t, "the namesake is known", func() bool {
			kind, err := follower.Kind(l.object.APIVersion, l.object.Kind)
			if err != nil {
				return false
			}
			found, err := kind.Find("fruit", "banana")
			return err == nil && found.UID == "uid-of-a-namesake"
		})
	}}
	payload, err := ask()
	if want := fmt.Sprintf(`"shoot":{"name":"banana","namespace":"fruit","uid":%q}`, l.object.UID); err != nil || !strings.Contains(payload, want) || strings.Contains(payload, "namesake") {
		t.Errorf("payload %s, %v; want %s", payload, err, want)
	}
	rest.Tokens = signed
	if payload, err := ask(); !apierrors.IsConflict(err) {
		t.Errorf("after that: %s, %v", payload, err)
	}
}
