package cluster

import (
	"errors"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// Kind is a kind of objects that an API serves.
type Kind struct {
	schema.GroupVersionKind
	Resource   string
	Namespaced bool
}

// ErrNoKind is the error of a word that names no kind of the API.
var ErrNoKind = errors.New("the API serves no such kind")

// Kind finds a kind by a word as kubectl takes it: a short name, a resource or a kind, with its group, or with version and group.
func (a *API) Kind(word string) (Kind, error) {
	client := discovery.NewDiscoveryClient(a.client)
	// Of groups that do not answer nothing is found, and the others are.
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return Kind{}, err
	}
	mapping, err := mappingOf(restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), client, nil), word)
	if meta.IsNoMatchError(err) {
		return Kind{}, fmt.Errorf("%q: %w", word, ErrNoKind)
	} else if err != nil {
		return Kind{}, err
	}
	return Kind{mapping.GroupVersionKind, mapping.Resource.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// mappingOf looks a word up in the order of kubectl.
func mappingOf(mapper meta.RESTMapper, word string) (*meta.RESTMapping, error) {
	full, resource := schema.ParseResourceArg(word)
	if full != nil {
		if kind, err := mapper.KindFor(*full); err == nil {
			return mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
	}
	if kind, err := mapper.KindFor(resource.WithVersion("")); err == nil {
		return mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	fullKind, kind := schema.ParseKindArg(word)
	if fullKind != nil {
		if mapping, err := mapper.RESTMapping(fullKind.GroupKind(), fullKind.Version); err == nil {
			return mapping, nil
		}
	}
	return mapper.RESTMapping(kind)
}

// Place is where an object of the kind is; the namespace counts for kinds that have one.
func (k Kind) Place(namespace, name string) Place {
	at := Place{API: path.Join("/apis", k.GroupVersion().String()), Resource: k.Resource, Name: name}
	if k.Group == "" {
		at.API = path.Join("/api", k.Version)
	}
	if k.Namespaced {
		at.Namespace = namespace
	}
	return at
}

// Title is the resource with its group.
func (k Kind) Title() string {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}.String()
}
