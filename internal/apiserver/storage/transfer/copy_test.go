package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/credence-id/credence/internal/apiserver/storage/transfer"
)

// memory is a storage; before is called before each write, and after is called after it.
type memory struct {
	kvs           []*mvccpb.KeyValue
	before, after func(key string) error
}

func (m *memory) All(context.Context) ([]*mvccpb.KeyValue, error) {
	var all []*mvccpb.KeyValue
	for _, kv := range m.kvs {
		all = append(all, &mvccpb.KeyValue{Key: kv.Key, Value: kv.Value, ModRevision: kv.ModRevision})
	}
	slices.SortFunc(all, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return all, nil
}

func (m *memory) Create(_ context.Context, key string, value []byte) error {
	if m.before != nil {
		if err := m.before(key); err != nil {
			return err
		}
	}
	m.kvs = append(m.kvs, &mvccpb.KeyValue{Key: []byte(key), Value: value})
	if m.after != nil {
		return m.after(key)
	}
	return nil
}

func (m *memory) Remove(_ context.Context, key string) error {
	m.kvs = slices.DeleteFunc(m.kvs, func(kv *mvccpb.KeyValue) bool { return string(kv.Key) == key })
	return nil
}

func holding(pairs ...string) *memory {
	m := &memory{}
	for i := 0; i < len(pairs); i += 2 {
		m.kvs = append(m.kvs, &mvccpb.KeyValue{Key: []byte(pairs[i]), Value: []byte(pairs[i+1]), ModRevision: int64(i + 1)})
	}
	return m
}

func TestCopy(t *testing.T) {
	from, to := holding("/g/r/b", `{"b":1}`, "/g/r/a", `{"a":1}`), &memory{}
	n, err := transfer.Copy(t.Context(), from, to)
	if err != nil || n != 2 {
		t.Fatalf("%d objects, %v", n, err)
	}
	if got, _ := to.All(t.Context()); len(got) != 2 || string(got[0].Key) != "/g/r/a" || string(got[1].Value) != `{"b":1}` {
		t.Errorf("the target holds %v", got)
	}
}

// A copy that fails leaves the target as it was.
func TestCopyThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		from   *memory
		before func(from, to *memory) func(string) error
		want   string
	}{
		"empty":     {from: &memory{}, want: "nothing is stored in the source"},
		"encrypted": {from: holding("/g/r/a", "k8s:enc:aescbc:v1:key1:abc"), want: "/g/r/a in the source is not JSON"},
		"outage": {from: holding("/g/r/a", "{}", "/g/r/b", "{}"), want: "write /g/r/b to the target: away", before: func(_, _ *memory) func(string) error {
			return func(key string) error {
				if key == "/g/r/b" {
					return errors.New("away")
				}
				return nil
			}
		}},
		"the source changes": {from: holding("/g/r/a", "{}"), want: "the source was changed", before: func(from, _ *memory) func(string) error {
			return func(string) error { from.kvs[0].ModRevision++; return nil }
		}},
		"the target changes": {from: holding("/g/r/a", "{}"), want: "the target holds other objects", before: func(_, to *memory) func(string) error {
			return func(string) error {
				to.kvs = append(to.kvs, &mvccpb.KeyValue{Key: []byte("/g/r/foreign"), Value: []byte("{}")})
				return nil
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			to := &memory{}
			if c.before != nil {
				to.before = c.before(c.from, to)
			}
			n, err := transfer.Copy(t.Context(), c.from, to)
			if err == nil || !strings.Contains(err.Error(), c.want) || n != 0 {
				t.Errorf("%d objects, %v, want %q", n, err, c.want)
			}
			for _, kv := range to.kvs {
				if string(kv.Key) != "/g/r/foreign" {
					t.Errorf("%s is left in the target", kv.Key)
				}
			}
		})
	}
	to := holding("/g/r/z", "{}")
	if _, err := transfer.Copy(t.Context(), holding("/g/r/a", "{}"), to); err == nil || !strings.Contains(err.Error(), "not empty: it holds 1 objects, such as /g/r/z") || len(to.kvs) != 1 {
		t.Errorf("a target that is not empty: %v, %v", err, to.kvs)
	}
}

// After an error of which the target has stored the value all the same, the value is removed; after a refusal nothing is.
func TestCopyWithALostAnswer(t *testing.T) {
	lost := errors.New("timeout")
	to := &memory{after: func(key string) error {
		if key == "/g/r/b" {
			return lost
		}
		return nil
	}}
	if _, err := transfer.Copy(t.Context(), holding("/g/r/a", "{}", "/g/r/b", "{}"), to); !errors.Is(err, lost) || len(to.kvs) != 0 {
		t.Errorf("%v, left in the target: %v", err, to.kvs)
	}
	to = &memory{}
	to.before = func(key string) error {
		to.kvs = append(to.kvs, &mvccpb.KeyValue{Key: []byte(key), Value: []byte("{}")})
		return transfer.Refusal{Err: errors.New("there is a value already")}
	}
	if _, err := transfer.Copy(t.Context(), holding("/g/r/a", "{}"), to); err == nil || !strings.Contains(err.Error(), "there is a value already") || len(to.kvs) != 1 {
		t.Errorf("%v, left in the target: %v", err, to.kvs)
	}
}
