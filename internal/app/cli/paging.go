package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// objectsPerPage bounds what is held of a list at a time: there may be tens of thousands of Secrets.
const objectsPerPage = 500

// listing is a list that is read page by page, of one namespace or of all (empty).
type listing struct {
	client              rest.Interface
	namespace, resource string
	labels, fields      string
	pageSize            int // 0: objectsPerPage
}

// each reads a list and shows each page to visit, which must not keep the page.
func each[List any, Pointer interface {
	*List
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, l listing, visit func(Pointer)) error {
	size := l.pageSize
	if size == 0 {
		size = objectsPerPage
	}
	for next := ""; ; {
		request := l.client.Get().MaxRetries(0).Namespace(l.namespace).Resource(l.resource).Param("limit", strconv.Itoa(size))
		for name, value := range map[string]string{"labelSelector": l.labels, "fieldSelector": l.fields, "continue": next} {
			if value != "" {
				request.Param(name, value)
			}
		}
		page := Pointer(new(List))
		if err := request.Do(ctx).Into(page); err != nil {
			return err
		}
		visit(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// scope is where a user may look: in all namespaces, in one, or nowhere.
type scope struct {
	namespace string // empty: all
	nowhere   bool
	note      string // the note to the user about what was left out; empty if nothing was
}

// widest looks in all namespaces, and where that is not allowed, in one. try reads a list and returns an error of the API.
func widest(what, namespace string, try func(namespace string) error) (scope, error) {
	err := try("")
	if !apierrors.IsForbidden(err) {
		return scope{}, err
	}
	if namespace != "" {
		inOne := try(namespace)
		if inOne == nil {
			return scope{namespace: namespace, note: fmt.Sprintf("only the %s of namespace %s were looked at: you may not list those of all namespaces", what, namespace)}, nil
		}
		if !apierrors.IsForbidden(inOne) {
			return scope{}, inOne
		}
	}
	return scope{nowhere: true, note: fmt.Sprintf("the %s were not looked at: %s", what, rightToList(what, namespace, err))}, nil
}

func rightToList(what, namespace string, err error) string {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Code == http.StatusForbidden {
		if m := rbacRefusal.FindStringSubmatch(status.Status().Message); m != nil {
			return fmt.Sprintf("user %q lacks the verb %q on %q %s", m[1], m[2], m[3], where)
		}
	}
	return fmt.Sprintf("you lack the verb \"list\" on %s %s", what, where)
}

// eachMetadata reads the metadata of objects page by page, of one namespace or of all (empty).
func (a *api) eachMetadata(ctx context.Context, namespace, resource string, visit func(*metav1.PartialObjectMetadata)) error {
	for next := ""; ; {
		request := a.core.Get().MaxRetries(0).Namespace(namespace).Resource(resource).Param("limit", strconv.Itoa(objectsPerPage)).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json")
		if next != "" {
			request.Param("continue", next)
		}
		answer, err := rawAnswer(request.Do(ctx))
		if err != nil {
			return err
		}
		var page metav1.PartialObjectMetadataList
		if err := json.Unmarshal(answer, &page); err != nil {
			return fmt.Errorf("read the list of %s: %w", resource, err)
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}
