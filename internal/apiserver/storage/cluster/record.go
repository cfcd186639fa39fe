package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

const (
	// Group is the API group of records.
	Group = "storage.credence.dev"
	// path is where the host cluster serves them.
	path = "/apis/" + Group + "/v1/records"

	// onlyMetadata keeps the host from answering with the value.
	onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

	resourceLabel  = Group + "/resource"
	namespaceLabel = Group + "/namespace"
)

// record is one stored object, as the host cluster has it.
type record struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metadata `json:"metadata"`
	// Key is where the object lies in the storage; the name of the record is made from it.
	Key   string `json:"key"`
	Value []byte `json:"value"`
	// Replaces is the resource version of what the record held before. It makes each write a change: without one the host would keep the
	// resource version.
	Replaces string `json:"replaces,omitempty"`
}

// metadata is what is read of a record's metadata, and written but for the annotations of others: all else that the host has is dropped with the next write.
type metadata struct {
	Name            string            `json:"name,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type recordList struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Items    []record        `json:"items"`
}

// keyValue returns the record as etcd would.
func (r *record) keyValue() (*mvccpb.KeyValue, error) {
	if name, err := nameOf(r.Key); err != nil || name != r.Metadata.Name {
		return nil, fmt.Errorf("record %q is not that of its key %q: it was not written by this server", r.Metadata.Name, r.Key)
	}
	revision, err := parseRevision(r.Metadata.ResourceVersion)
	if err != nil {
		return nil, err
	}
	return &mvccpb.KeyValue{Key: []byte(r.Key), Value: r.Value, ModRevision: revision}, nil
}

// parseRevision reads a resource version of the host, which clients may compare as numbers.
func parseRevision(version string) (int64, error) {
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil || revision <= 0 {
		return 0, fmt.Errorf("the host cluster gave a resource version %q that is not a number", version)
	}
	return revision, nil
}

// labelsOf returns what the records below a prefix of keys have in common; prefix may be a key.
func (s *records) labelsOf(prefix string) labels.Set {
	set := labels.Set{resourceLabel: s.resource}
	namespace, _, inside := strings.Cut(strings.TrimPrefix(prefix, s.prefix), "/")
	if inside && len(validation.IsValidLabelValue(namespace)) == 0 {
		set[namespaceLabel] = namespace
	}
	return set
}

// read gets a record, or what else the host has at the path.
func read[T any](ctx context.Context, request *rest.Request) (*T, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	body, err := result.Raw()
	if err != nil {
		return nil, err
	}
	into := new(T)
	if err := json.Unmarshal(body, into); err != nil {
		return nil, fmt.Errorf("decode what the host cluster answered: %w", err)
	}
	return into, nil
}

// write sends a record, which name is put into the path unless it is created.
func (s *records) write(ctx context.Context, key string, value []byte, replaces int64) (int64, error) {
	name, err := nameOf(key)
	if err != nil {
		return 0, err
	}
	sent := record{
		TypeMeta: metav1.TypeMeta{APIVersion: Group + "/v1", Kind: "Record"},
		Metadata: metadata{Name: name, Labels: s.labelsOf(key), Annotations: s.mac.annotations(name, key, value)},
		Key:      key, Value: value,
	}
	verb, at := http.MethodPost, path
	if replaces != 0 {
		verb, at = http.MethodPut, path+"/"+name
		sent.Replaces = strconv.FormatInt(replaces, 10)
		sent.Metadata.ResourceVersion = sent.Replaces
	}
	body, err := json.Marshal(sent)
	if err != nil {
		return 0, fmt.Errorf("encode record: %w", err)
	}
	request := s.client.Verb(verb).AbsPath(at).Param("fieldValidation", "Ignore").SetHeader("Content-Type", "application/json").SetHeader("Accept", onlyMetadata)
	stored, err := read[struct{ Metadata metadata }](ctx, request.Body(body))
	if err != nil {
		return 0, err
	}
	return parseRevision(stored.Metadata.ResourceVersion)
}
