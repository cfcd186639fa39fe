// Package contextstest is what a Follower of contexts needs, for tests of what uses one. In go ContextKinds, out comes a storage that has them; what is
// delivered goes nowhere. It reads no objects: a dynamic client of a test does.
package contextstest

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contexts"
)

// Kinds is a storage of ContextKinds that do not change once they were listed.
type Kinds []v1alpha1.ContextKind

// List implements contexts.Storage.
func (k *Kinds) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return (&v1alpha1.ContextKindList{Items: *k}).DeepCopy(), nil
}

// Watch implements contexts.Storage.
func (*Kinds) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// NoDeliveries delivers nothing.
type NoDeliveries struct{}

var _ contexts.Deliveries = NoDeliveries{}

// Follow implements contexts.Deliveries.
func (NoDeliveries) Follow(contexts.Source, string) {}

// Set implements contexts.Deliveries.
func (NoDeliveries) Set(contexts.Source, contexts.Placed) {}

// Delete implements contexts.Deliveries.
func (NoDeliveries) Delete(contexts.Source, string, string) {}

// Filled implements contexts.Deliveries.
func (NoDeliveries) Filled(contexts.Source) {}

// Forget implements contexts.Deliveries.
func (NoDeliveries) Forget(schema.GroupResource) {}
