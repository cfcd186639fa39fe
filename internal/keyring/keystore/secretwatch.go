package keystore

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch calls changed whenever the Secret may have changed, and at least once if there is one. It returns nil when ctx is
// done or the API ends the watch, which it does from time to time.
func (s *Secret) Watch(ctx context.Context, changed func()) error {
	// Without a resourceVersion the API first sends what exists, so nothing is missed between two watches.
	watching, err := s.client.Watch(silent(ctx), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String(),
	})
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return s.failed(ctx, "watch", err)
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watching.ResultChan():
			switch {
			case !open || ctx.Err() != nil: // the end of ctx may come as an event of the watch
				return nil
			case event.Type == watch.Error:
				return s.failed(ctx, "watch", apierrors.FromObject(event.Object))
			}
			changed()
		}
	}
}
