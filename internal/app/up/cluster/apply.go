package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// fieldManager owns the fields that up applies.
const fieldManager = "credence-up"

// Apply makes each object be as given, by server-side apply: namespaces first, then in the order given.
func (c *Client) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	for _, object := range objects {
		applied, err := c.apply(ctx, object)
		if err == nil && applied.GetDeletionTimestamp() != nil && object.GetKind() == "Namespace" {
			if err = c.awaitEnd(ctx, object); err == nil {
				_, err = c.apply(ctx, object)
			}
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (c *Client) apply(ctx context.Context, object *unstructured.Unstructured) (applied *unstructured.Unstructured, err error) {
	err = c.repeat(ctx, temporary, func() error {
		applied, err = c.resource(object).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	})
	return applied, err
}

// Remove deletes those of objects that Apply has made. Objects that others have installed stay.
func (c *Client) Remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		var found *unstructured.Unstructured
		err := c.repeat(ctx, temporary, func() (err error) {
			found, err = c.resource(object).Get(ctx, object.GetName(), metav1.GetOptions{})
			return err
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil && slices.ContainsFunc(found.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == fieldManager }) {
			err = c.repeat(ctx, temporary, func() error {
				return c.resource(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
			})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func rank(object *unstructured.Unstructured) int {
	if object.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

// resource guesses the plural by Kubernetes' own rule, which holds for every kind that is shipped; a request to the cluster
// would cost a second.
func (c *Client) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if namespace := object.GetNamespace(); namespace != "" {
		return c.objects.Resource(plural).Namespace(namespace)
	}
	return c.objects.Resource(plural)
}

// The pause before the second try of something, and the longest one.
const firstPause, longestPause = 50 * time.Millisecond, time.Second

// repeat does something until it succeeds or fails for good, or ctx ends; then the error is that of the last try that
// was not cut short.
func (c *Client) repeat(ctx context.Context, again func(error) bool, do func() error) error {
	var last error
	failed := func(error) {}
	if c.Reasons != nil {
		failed = c.Reasons("the cluster")
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && last != nil:
			return fmt.Errorf("%w (%w)", last, context.Cause(ctx))
		case ctx.Err() != nil || !again(err):
			return err
		}
		last = err
		failed(err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", last, context.Cause(ctx))
		}
	}
}

func always(error) bool { return true }

// notYetReady ends the refusal of an API server whose admission has not read its policies ten seconds after the request came.
const notYetReady = "not yet ready to handle request"

// temporary reports whether the server, though ready, is not yet able to answer: caches fill, and an object just made (a
// namespace) may not be seen by admission.
func temporary(err error) bool {
	var network net.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsConflict(err) || apierrors.IsInternalError(err) || errors.As(err, &network) ||
		apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), notYetReady)
}
