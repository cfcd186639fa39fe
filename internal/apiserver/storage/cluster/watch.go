package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// again and againAtMost are how long after a failure the host's watch is started again.
	again       = 50 * time.Millisecond
	againAtMost = 5 * time.Second
)

// watcher is the watching part of an etcd client.
type watcher struct{ *records }

// Close implements clientv3.Watcher. Watches end with their contexts.
func (watcher) Close() error { return nil }

// RequestProgress implements clientv3.Watcher. The host sends its bookmarks when it likes to.
func (watcher) RequestProgress(context.Context) error {
	return errors.New("the host cluster sends no progress on request")
}

// Watch implements clientv3.Watcher. A watch goes on where it was when the host ends it, or cannot be reached; it ends when the host no
// longer has what follows.
func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	responses := make(chan clientv3.WatchResponse)
	go func() {
		defer close(responses)
		f := following{records: w.records, key: key, prefix: len(op.RangeBytes()) > 0, progress: op.IsProgressNotify(), revision: op.Rev() - 1, responses: responses}
		f.run(ctx)
	}()
	return responses
}

// following is a watch of a key, or of all keys with a prefix, after a revision.
type following struct {
	*records
	key              string
	prefix, progress bool
	revision         int64
	responses        chan<- clientv3.WatchResponse
}

func (f *following) run(ctx context.Context) {
	for wait := again; ; wait = min(2*wait, againAtMost) {
		before := f.revision
		err := f.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, rpctypes.ErrCompacted) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			f.send(ctx, clientv3.WatchResponse{Canceled: true, CompactRevision: f.revision + 1})
			return
		case errors.As(err, &unusable{}):
			f.send(ctx, clientv3.WatchResponse{Canceled: true, CancelReason: err.Error()})
			return
		case f.revision > before || err == nil:
			wait = again
		}
		if err != nil {
			klog.FromContext(ctx).Info("The watch of the stored records has ended, and is started again", "resource", f.resource, "err", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// follow is one watch of the host; nil: the host has ended it, as it does from time to time.
func (f *following) follow(ctx context.Context) error {
	request := f.client.Get().AbsPath(path)
	if f.prefix {
		request = request.Param("labelSelector", f.labelsOf(f.key).String())
	} else {
		name, err := nameOf(f.key)
		if err != nil {
			return err
		}
		request = request.Param("fieldSelector", byName(name))
	}
	events, err := open(ctx, request, f.revision)
	if err != nil {
		return err
	}
	return events.each(func(e hostEvent) (bool, error) {
		response, err := f.response(ctx, e)
		if err != nil {
			return false, unusable{err}
		}
		f.revision = e.revision
		return response == nil || f.send(ctx, *response), nil
	})
}

// unusable is an error that would come again with the next watch: of an event, or one that the host has sent as an event.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// response returns what etcd would send for an event; nil: nothing.
func (f *following) response(ctx context.Context, e hostEvent) (*clientv3.WatchResponse, error) {
	response := &clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: e.revision}}
	if e.kind == watch.Bookmark {
		if !f.progress {
			return nil, nil
		}
		return response, nil
	}
	if !f.mac.accepts(ctx, &e.record) {
		return nil, nil
	}
	kv, err := e.record.keyValue()
	if err != nil {
		return nil, err
	}
	if f.prefix && !strings.HasPrefix(string(kv.Key), f.key) {
		return nil, nil
	}
	event := &clientv3.Event{Type: mvccpb.Event_PUT, Kv: kv}
	switch e.kind {
	case watch.Added:
		kv.CreateRevision = kv.ModRevision
	case watch.Modified:
		event.PrevKv, err = f.before(ctx, kv)
	case watch.Deleted:
		event.Type, event.PrevKv = mvccpb.Event_DELETE, kv
		event.Kv = &mvccpb.KeyValue{Key: kv.Key, ModRevision: kv.ModRevision}
	}
	response.Events = []*clientv3.Event{event}
	return response, err
}

// before returns a key as it was before a change; without its value unless that is demanded.
func (f *following) before(ctx context.Context, kv *mvccpb.KeyValue) (*mvccpb.KeyValue, error) {
	if !demands(ctx, previous) {
		return &mvccpb.KeyValue{Key: kv.Key}, nil
	}
	found, err := f.records.Get(ctx, string(kv.Key), kubernetes.GetOptions{Revision: kv.ModRevision - 1})
	if err == nil && found.KV == nil {
		err = fmt.Errorf("record of %s was changed at %d, and not there before", kv.Key, kv.ModRevision)
	}
	return found.KV, err
}

// send reports whether the response was taken.
func (f *following) send(ctx context.Context, response clientv3.WatchResponse) bool {
	select {
	case f.responses <- response:
		return true
	case <-ctx.Done():
		return false
	}
}

// hostEvent is one event of the host's watch of records.
type hostEvent struct {
	kind     watch.EventType
	record   record
	revision int64
}

// hostEvents are the events of one watch of the host.
type hostEvents struct{ io.ReadCloser }

// open starts a watch of the host after a revision; 0: from any state on. It returns when the watch stands.
func open(ctx context.Context, request *rest.Request, revision int64) (*hostEvents, error) {
	body, err := request.Param("watch", "1").Param("allowWatchBookmarks", "true").Param("resourceVersion", strconv.FormatInt(revision, 10)).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return &hostEvents{body}, nil
}

// each calls do until it returns false or an error, or the host ends the watch.
func (h *hostEvents) each(do func(hostEvent) (bool, error)) error {
	defer func() { _ = h.Close() }()
	decoder := json.NewDecoder(h)
	for {
		var sent struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&sent); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what the host cluster sends: %w", err)
		}
		if sent.Type == watch.Error {
			failure := &apierrors.StatusError{}
			if err := json.Unmarshal(sent.Object, &failure.ErrStatus); err != nil {
				return fmt.Errorf("decode an error of the host cluster: %w", err)
			}
			return unusable{failure}
		}
		event := hostEvent{kind: sent.Type}
		err := json.Unmarshal(sent.Object, &event.record)
		if err != nil {
			return fmt.Errorf("decode an event of the host cluster: %w", err)
		}
		if event.revision, err = parseRevision(event.record.Metadata.ResourceVersion); err != nil {
			return err
		}
		if more, err := do(event); err != nil || !more {
			return err
		}
	}
}
