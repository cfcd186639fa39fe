package cluster

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PageSize bounds what is held of a list at a time: there may be tens of thousands of Secrets, and a million identities.
const PageSize = 500

// Listing is a list that is read page by page, of one namespace or of all (empty).
type Listing struct {
	API                 string // the path of the group and version, such as /apis/apps/v1; empty: /api/v1
	Namespace, Resource string
	Labels, Fields      string
	Metadata            bool // of the objects, only their metadata
}

// Each reads a list and shows each of its objects to visit.
func Each[Object any](ctx context.Context, a *API, l Listing, visit func(*Object)) error {
	at := Place{API: l.API, Namespace: l.Namespace, Resource: l.Resource}
	for next := ""; ; {
		request := at.in(a.client.Get()).Param("limit", strconv.Itoa(PageSize))
		for name, value := range map[string]string{"labelSelector": l.Labels, "fieldSelector": l.Fields, "continue": next} {
			if value != "" {
				request.Param(name, value)
			}
		}
		if l.Metadata {
			request.SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json")
		}
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []Object `json:"items"`
		}
		if err := send(ctx, request, nil, &page); err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// Scope is where a user may look: in all namespaces, in one, or nowhere.
type Scope struct {
	Namespace string // empty: all
	Nowhere   bool
	Note      string // the note to the user about what was left out; empty if nothing was
}

// Widest looks in all namespaces, and where that is not allowed, in one. try reads a list and returns an error of the API.
func Widest(what, namespace string, try func(namespace string) error) (Scope, error) {
	err := try("")
	if !apierrors.IsForbidden(err) {
		return Scope{}, err
	}
	if namespace != "" {
		inOne := try(namespace)
		if inOne == nil {
			return Scope{Namespace: namespace, Note: fmt.Sprintf("only the %s of namespace %s were looked at: you may not list those of all namespaces", what, namespace)}, nil
		}
		if !apierrors.IsForbidden(inOne) {
			return Scope{}, inOne
		}
	}
	return Scope{Nowhere: true, Note: fmt.Sprintf("the %s were not looked at: %s", what, rightToList(what, namespace, err))}, nil
}

func rightToList(what, namespace string, err error) string {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		if right, ok := MissingRight(status.Status().Message); ok {
			return fmt.Sprintf("user %q lacks the verb %q on %q %s", right.User, right.Verb, right.Resource, where)
		}
	}
	return fmt.Sprintf("you lack the verb \"list\" on %s %s", what, where)
}
