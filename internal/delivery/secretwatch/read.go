package secretwatch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get implements client.Reader. A Secret that may not be read is not found.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return c.Cache.Get(ctx, key, object, options...)
	}
	c.mu.Lock()
	followed, ok := c.namespaces[key.Namespace]
	c.mu.Unlock()
	if ok {
		if found, exists, err := followed.store.GetByKey(key.String()); err != nil {
			return err
		} else if exists {
			found.(*corev1.Secret).DeepCopyInto(secret)
			return nil
		}
	}
	return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
}

// List implements client.Reader: of Secrets, by namespace, labels and one indexed field.
func (c *Cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	secrets, ok := list.(*corev1.SecretList)
	if !ok {
		return c.Cache.List(ctx, list, options...)
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	secrets.Items = nil
	for _, found := range c.namespacesOf(o.Namespace) {
		objects, err := found.matching(o.FieldSelector)
		if err != nil {
			return err
		}
		for _, object := range objects {
			secret := object.(*corev1.Secret)
			if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(secret.Labels)) {
				continue
			}
			if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
				secret = secret.DeepCopy()
			}
			secrets.Items = append(secrets.Items, *secret)
		}
	}
	return nil
}

// namespacesOf returns one namespace, or all if name is empty.
func (c *Cache) namespacesOf(name string) []*namespace {
	if name == "" {
		return c.followed()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if followed, ok := c.namespaces[name]; ok {
		return []*namespace{followed}
	}
	return nil
}

// matching returns the Secrets of which an indexed field has a value; all of them without a selector.
func (n *namespace) matching(selector fields.Selector) ([]any, error) {
	if selector == nil || selector.Empty() {
		return n.store.List(), nil
	}
	requirements := selector.Requirements()
	if len(requirements) != 1 {
		return nil, fmt.Errorf("list Secrets by %s: one indexed field can be selected by", selector)
	}
	return n.store.ByIndex(requirements[0].Field, requirements[0].Value)
}
