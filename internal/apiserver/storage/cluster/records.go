package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// records are the keys of one resource, with the calls that Kubernetes makes to etcd.
type records struct {
	client rest.Interface
	mac    *MAC
	// resource is the value of the records' label, and prefix what their keys begin with, with a slash at the end.
	resource, prefix string
}

var _ kubernetes.Interface = &records{}

// demand is what a request needs besides what it names.
type demand int

const (
	// revisions: of a single key, the revision of the whole storage too.
	revisions demand = iota
	// previous: in events, the value that was replaced.
	previous
)

func demanding(ctx context.Context, d demand) context.Context {
	return context.WithValue(ctx, d, true)
}

func demands(ctx context.Context, d demand) bool { return ctx.Value(d) != nil }

// Get implements kubernetes.Interface. The revision is that of the key, and 0 without one, unless the request demands the revision of the
// storage: the host cluster has it in lists only, and takes longer for these.
func (s *records) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	name, err := nameOf(key)
	if err != nil {
		return kubernetes.GetResponse{}, err
	}
	if opts.Revision != 0 || demands(ctx, revisions) {
		request := s.client.Get().AbsPath(path).Param("fieldSelector", byName(name))
		found, err := s.read(ctx, at(request, opts.Revision), opts.Revision)
		if err != nil || len(found.kvs) == 0 {
			return kubernetes.GetResponse{Revision: found.revision}, err
		}
		return kubernetes.GetResponse{KV: found.kvs[0], Revision: found.revision}, nil
	}
	found, err := read[record](ctx, s.client.Get().AbsPath(path, name))
	if apierrors.IsNotFound(err) && !missing(err) {
		return kubernetes.GetResponse{}, nil
	}
	if err != nil {
		return kubernetes.GetResponse{}, err
	}
	if !s.mac.accepts(ctx, found) {
		return kubernetes.GetResponse{}, nil
	}
	kv, err := found.keyValue()
	if err != nil {
		return kubernetes.GetResponse{}, err
	}
	return kubernetes.GetResponse{KV: kv, Revision: kv.ModRevision}, nil
}

func byName(name string) string {
	return fields.OneTermEqualSelector("metadata.name", name).String()
}

// missing reports whether the host cluster serves no records at all: that is an outage, not a record that was not found.
func missing(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// Count implements kubernetes.Interface.
func (s *records) Count(ctx context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	one, err := s.List(ctx, prefix, kubernetes.ListOptions{Limit: 1})
	return one.Count, err
}

// OptimisticPut implements kubernetes.Interface. Records do not expire: a lease is of no effect.
func (s *records) OptimisticPut(ctx context.Context, key string, value []byte, expected int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	revision, err := s.write(ctx, key, value, expected)
	if err == nil {
		return kubernetes.PutResponse{Succeeded: true, Revision: revision}, nil
	}
	current, err := s.current(ctx, key, err, opts.GetOnFailure)
	return kubernetes.PutResponse{KV: current.KV, Revision: current.Revision}, err
}

// current returns what stands in the way of a write that failed with err, or the error if nothing does.
func (s *records) current(ctx context.Context, key string, err error, wanted bool) (kubernetes.GetResponse, error) {
	switch {
	case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && (!apierrors.IsNotFound(err) || missing(err)):
		return kubernetes.GetResponse{}, err
	case !wanted:
		return kubernetes.GetResponse{}, nil
	}
	return s.Get(ctx, key, kubernetes.GetOptions{})
}

// OptimisticDelete implements kubernetes.Interface.
func (s *records) OptimisticDelete(ctx context.Context, key string, expected int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	name, err := nameOf(key)
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	// The host's answer to a deletion has no resource version, but the event of it does. A watch from any state on: the version to be
	// deleted may be older than what the host has events of.
	watching, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	events, err := open(watching, s.client.Get().AbsPath(path).Param("fieldSelector", byName(name)), 0)
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	defer func() { _ = events.Close() }()
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{ResourceVersion: new(strconv.FormatInt(expected, 10))},
	})
	if err != nil {
		return kubernetes.DeleteResponse{}, fmt.Errorf("encode deletion: %w", err)
	}
	if err := s.client.Delete().AbsPath(path, name).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error(); err != nil {
		current, err := s.current(ctx, key, err, opts.GetOnFailure)
		return kubernetes.DeleteResponse{KV: current.KV, Revision: current.Revision}, err
	}
	response := kubernetes.DeleteResponse{Succeeded: true}
	_ = events.each(func(e hostEvent) (bool, error) {
		if e.kind == watch.Deleted && e.revision > expected {
			response.Revision = e.revision
		}
		return response.Revision == 0, nil
	})
	if response.Revision != 0 {
		return response, nil
	}
	// It is deleted. Without the event, what the host has reached by now stands for it.
	now, err := s.Get(demanding(ctx, revisions), key, kubernetes.GetOptions{})
	if err != nil {
		return kubernetes.DeleteResponse{}, fmt.Errorf("find the resource version of a deletion: %w", err)
	}
	response.Revision = now.Revision
	return response, nil
}

// eventPatience is how long a deletion may take, with its event.
const eventPatience = 5 * time.Second

// kvsOf turns records into what etcd would return.
func (s *records) kvsOf(ctx context.Context, items []record) ([]*mvccpb.KeyValue, error) {
	kvs := make([]*mvccpb.KeyValue, 0, len(items))
	for i := range items {
		if !s.mac.accepts(ctx, &items[i]) {
			continue
		}
		kv, err := items[i].keyValue()
		if err != nil {
			return nil, err
		}
		kvs = append(kvs, kv)
	}
	return kvs, nil
}
