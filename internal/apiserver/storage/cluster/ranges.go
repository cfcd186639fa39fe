package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/rest"
)

// latest is the revision in a continue token with which a list goes on in what is stored now.
const latest = -1

// List implements kubernetes.Interface. A list without a limit is one request, by labels. For a page, the host is given a continue token
// of our own making: in it are the revision and the name to start at, as in all tokens of Kubernetes' API servers. The keys that remain
// are counted by the host; those behind the prefix are subtracted.
func (s *records) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	from := cmp.Or(opts.Continue, prefix)
	if opts.Limit > 0 {
		return s.page(ctx, from, prefix, opts)
	}
	request := s.client.Get().AbsPath(path).Param("labelSelector", s.labelsOf(prefix).String())
	if opts.Continue == "" {
		request = at(request, opts.Revision)
	} else {
		start, err := token(from, opts.Revision)
		if err != nil {
			return kubernetes.ListResponse{}, err
		}
		request = request.Param("continue", start)
	}
	page, err := s.read(ctx, request, opts.Revision)
	return within(page.kvs, page.revision, from, prefix), err
}

// page returns at least one key of a prefix, from a key on, if there are any. Keys whose names were cut come all at once, where
// they share what is left: only so are they in order.
func (s *records) page(ctx context.Context, from, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	start, err := token(from, opts.Revision)
	if err != nil {
		return kubernetes.ListResponse{}, err
	}
	var all kubernetes.ListResponse
	for {
		page, err := s.hostPage(ctx, start, opts.Limit, opts.Revision)
		if err != nil {
			return kubernetes.ListResponse{}, err
		}
		last := ""
		if len(page.kvs) > 0 {
			last = string(page.kvs[len(page.kvs)-1].Key)
		}
		name, _ := nameOf(last) // it was made by this function
		all = within(append(all.Kvs, page.kvs...), page.revision, from, prefix)
		switch {
		case page.next == "" || last > prefix && !strings.HasPrefix(last, prefix):
			return all, nil
		case len(all.Kvs) > 0 && !isCut(name):
			behind, err := s.behind(ctx, prefix, page.revision)
			all.Count += page.remaining - behind
			return all, err
		}
		start, opts.Revision = page.next, page.revision
	}
}

// behind returns how many records have names behind those of a prefix.
func (s *records) behind(ctx context.Context, prefix string, revision int64) (int64, error) {
	token, err := encodeToken(clientv3.GetPrefixRangeEnd(plainName(prefix)), revision)
	if err != nil {
		return 0, err
	}
	page, err := s.hostPage(ctx, token, 1, revision)
	return int64(len(page.kvs)) + page.remaining, err
}

// within returns the keys that are in a prefix and not before a key, in their order.
func within(kvs []*mvccpb.KeyValue, revision int64, from, prefix string) kubernetes.ListResponse {
	kvs = slices.DeleteFunc(kvs, func(kv *mvccpb.KeyValue) bool {
		return string(kv.Key) < from || !bytes.HasPrefix(kv.Key, []byte(prefix))
	})
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return kubernetes.ListResponse{Kvs: kvs, Count: int64(len(kvs)), Revision: revision}
}

// token returns where a list begins.
func token(from string, revision int64) (string, error) {
	name, err := firstName(from)
	if err != nil {
		return "", err
	}
	return encodeToken(name, revision)
}

func encodeToken(name string, revision int64) (string, error) {
	revision = cmp.Or(revision, latest)
	token, err := json.Marshal(struct {
		Version  string `json:"v"`
		Revision int64  `json:"rv"`
		Start    string `json:"start"`
	}{"meta.k8s.io/v1", revision, name})
	if err != nil {
		return "", fmt.Errorf("encode where a list goes on: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(token), nil
}

// at requests a list as it was at a revision; 0: as it is now.
func at(request *rest.Request, revision int64) *rest.Request {
	if revision == 0 {
		return request
	}
	return request.Param("resourceVersion", strconv.FormatInt(revision, 10)).Param("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
}

// hostPage is a page of the host's list of records.
type hostPage struct {
	kvs                 []*mvccpb.KeyValue
	revision, remaining int64
	next                string
}

func (s *records) hostPage(ctx context.Context, token string, limit, revision int64) (hostPage, error) {
	return s.read(ctx, s.client.Get().AbsPath(path).Param("limit", strconv.FormatInt(limit, 10)).Param("continue", token), revision)
}

func (s *records) read(ctx context.Context, request *rest.Request, revision int64) (hostPage, error) {
	list, err := read[recordList](ctx, request)
	switch {
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return hostPage{}, rpctypes.ErrCompacted
	case revision > 0 && storage.IsTooLargeResourceVersion(err):
		return hostPage{}, rpctypes.ErrFutureRev
	case err != nil:
		return hostPage{}, err
	}
	page := hostPage{next: list.Metadata.Continue}
	if list.Metadata.RemainingItemCount != nil {
		page.remaining = *list.Metadata.RemainingItemCount
	}
	if page.revision, err = parseRevision(list.Metadata.ResourceVersion); err != nil {
		return hostPage{}, err
	}
	page.kvs, err = s.kvsOf(ctx, list.Items)
	return page, err
}

// keyValues are the records for the calls of the storage of k8s.io/apiserver to etcd besides kubernetes.Interface, for the state at the
// beginning of a watch.
type keyValues struct {
	clientv3.KV // of what is not called
	*records
}

// Get implements clientv3.KV.
func (k keyValues) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, opts...)
	if len(op.RangeBytes()) == 0 {
		found, err := k.records.Get(demanding(ctx, revisions), key, kubernetes.GetOptions{Revision: op.Rev()})
		if err != nil {
			return nil, err
		}
		response := &clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{Revision: found.Revision}}
		if found.KV != nil {
			response.Kvs, response.Count = []*mvccpb.KeyValue{found.KV}, 1
		}
		return response, nil
	}
	// A range is one prefix, from its beginning or from a key in it.
	prefix := string(op.RangeBytes())
	prefix = prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]-1)
	list := kubernetes.ListOptions{Revision: op.Rev(), Limit: op.Limit()}
	if key != prefix {
		list.Continue = key
	}
	found, err := k.records.List(ctx, prefix, list)
	if err != nil {
		return nil, err
	}
	return &clientv3.GetResponse{
		Header: &etcdserverpb.ResponseHeader{Revision: found.Revision},
		Kvs:    found.Kvs, Count: found.Count, More: int64(len(found.Kvs)) < found.Count,
	}, nil
}

// GetStream implements clientv3.KV, as an etcd does that has no streams: the storage reads pages.
func (keyValues) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "records are read in pages")
}

// leases are of no effect: the API server stores nothing that expires.
type leases struct{ clientv3.Lease }

// Grant implements clientv3.Lease.
func (leases) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ID: clientv3.NoLease, TTL: int64(time.Hour / time.Second)}, nil
}
