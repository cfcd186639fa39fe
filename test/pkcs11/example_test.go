//go:build cgo

package pkcs11

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
)

// A client of a cluster whose key never leaves its token.
func Example() {
	token, cluster := enrolled("jane")
	defer token.Close()

	name, err := connect(context.Background(), token, cluster)
	fmt.Println(name, err)
	// Output: jane <nil>
}

// connect returns the user that the cluster takes us for.
func connect(ctx context.Context, token *Token, cluster *rest.Config) (string, error) {
	pool, err := execcredential.NewPool(execcredential.Options{})
	if err != nil {
		return "", err
	}
	defer pool.Close()
	source := pool.SourceOf(token)
	config, err := clientgo.ConfigFor(source, rest.AnonymousClientConfig(cluster))
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// enrolled has a token with a key and its certificate, and where the cluster is, for the example.
func enrolled(user string) (*Token, *rest.Config) {
	token, err := makeToken("P-256", "key")
	if err != nil {
		panic(err)
	}
	request, err := token.Request(user)
	if err != nil {
		panic(err)
	}
	certificate, err := shared.sign(context.Background(), request)
	if err != nil {
		panic(err)
	}
	if err := token.Keep(certificate); err != nil {
		panic(err)
	}
	return token, shared.admin
}
