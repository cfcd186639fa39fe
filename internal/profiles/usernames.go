package profiles

import (
	"context"
	"maps"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/profile/username"
)

// usernameIndex is that of cached profiles by the keys of the usernames that they have or want.
const usernameIndex = "username"

func claimOf(p *accounts.ServiceAccountProfile) username.Claim {
	return username.Claim{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Created: p.CreationTimestamp.Time,
		Explicit: p.Spec.Username, Has: p.Status.Username,
	}
}

// usernames are the keys of the usernames that a profile has or wants.
func (s *Statuses) usernames(p *accounts.ServiceAccountProfile) []string {
	keys := []string{username.Key(s.Usernames.Wanted(claimOf(p)))}
	if has := username.Key(p.Status.Username); has != "" && has != keys[0] {
		keys = append(keys, has)
	}
	return keys
}

// decideUsername returns what becomes of the username of a profile.
func (s *Statuses) decideUsername(ctx context.Context, own *accounts.ServiceAccountProfile) (username.Decision, error) {
	var others []username.Claim
	for _, key := range s.usernames(own) {
		found, err := s.list(ctx, usernameIndex, key)
		if err != nil {
			return username.Decision{}, err
		}
		for i := range found {
			if found[i].UID != own.UID {
				others = append(others, claimOf(&found[i]))
			}
		}
		if holder, err := s.holder(ctx, key); err != nil {
			return username.Decision{}, err
		} else if holder != nil && holder.UID != own.UID {
			others = append(others, claimOf(holder))
		}
	}
	return s.Usernames.Decide(claimOf(own), others), nil
}

// give remembers a username that is about to be written: the cache shows it later.
func (s *Statuses) give(own *accounts.ServiceAccountProfile, name string) {
	maps.DeleteFunc(s.given, func(_ string, holder *accounts.ServiceAccountProfile) bool { return holder.UID == own.UID })
	if name == "" || name == own.Status.Username {
		return
	}
	holder := own.DeepCopy()
	holder.Status.Username = name
	s.given[username.Key(name)] = holder
}

// holder returns the profile that a username was given to, while the cache does not show it; nil if there is no such profile.
func (s *Statuses) holder(ctx context.Context, key string) (*accounts.ServiceAccountProfile, error) {
	holder := s.given[key]
	if holder == nil {
		return nil, nil
	}
	now := &accounts.ServiceAccountProfile{}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(holder), now)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	// It is gone, or the cache shows what it has.
	if err != nil || now.UID != holder.UID || username.Key(now.Status.Username) == key {
		delete(s.given, key)
		return nil, nil
	}
	return holder, nil
}

// rivals queues the profiles that have or want a username which a profile had or wanted, when that changes.
func (s *Statuses) rivals() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, q queue, changed ...client.Object) {
		for _, object := range changed {
			for _, key := range s.usernames(object.(*accounts.ServiceAccountProfile)) {
				for _, request := range s.requests(ctx, usernameIndex, key) {
					if request.NamespacedName != client.ObjectKeyFromObject(object) {
						q.Add(request)
					}
				}
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := claimOf(e.ObjectOld.(*accounts.ServiceAccountProfile)), claimOf(e.ObjectNew.(*accounts.ServiceAccountProfile))
			if before != after {
				enqueue(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
	}
}
