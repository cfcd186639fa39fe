package connection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
)

// Object is an object on whose behalf a token is requested. Its kind is known once it was read.
type Object struct {
	cluster.Kind
	Name string
	word string
}

var serviceAccounts = cluster.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Resource: "serviceaccounts", Namespaced: true}

// ParseObject reads KIND/NAME.
func ParseObject(s string) (*Object, error) {
	word, name, ok := strings.Cut(s, "/")
	if !ok || word == "" {
		return nil, fmt.Errorf("%q is not of the form KIND/NAME", s)
	}
	o := &Object{Name: name, word: word}
	if slices.Contains([]string{"serviceaccount", "serviceaccounts", "sa"}, strings.ToLower(word)) {
		o.Kind = serviceAccounts
	}
	return o, cluster.CheckName(name)
}

// Read looks up the object that exists now: a namesake that is created later has another uid. The error is of
// cluster.ErrNoContextKind if no tokens are requested on behalf of objects of its kind.
func (o *Object) Read(ctx context.Context, api *cluster.API, namespace string) (*v1alpha1.ContextObject, error) {
	if o.Resource == "" {
		kind, err := api.ContextKind(ctx, o.word)
		if err != nil {
			return nil, err
		}
		o.Kind = kind
	}
	at := o.Place(namespace, o.Name)
	uid, err := api.UID(ctx, at)
	return &v1alpha1.ContextObject{APIVersion: o.GroupVersion().String(), Kind: o.Kind.Kind, Namespace: at.Namespace, Name: o.Name, UID: uid}, err
}
