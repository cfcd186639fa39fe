package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// macAnnotation has the MAC of a record, in base64. It is an annotation, so that backups keep it, and no schema drops it.
const macAnnotation = Group + "/mac"

// MAC authenticates records, by a key that API servers alone have: a record that another program made is not one. nil: records are neither
// signed nor checked.
type MAC struct {
	key []byte
	// enforced is set once everything that is stored was signed. Before, records without a MAC are those of earlier versions.
	enforced atomic.Bool
	// refused are the records that were reported, by name, with their resource versions.
	refused sync.Map
}

// NewMAC returns the MAC of a key. With enforced, records without a MAC are refused.
func NewMAC(key []byte, enforced bool) *MAC {
	m := &MAC{key: key}
	m.enforced.Store(enforced)
	return m
}

// of returns the MAC of a record of a name, with a value at a key.
func (m *MAC) of(name, key string, value []byte) string {
	sum := hmac.New(sha256.New, m.key)
	for _, part := range []string{name, key} {
		_, _ = sum.Write(append(binary.BigEndian.AppendUint64(nil, uint64(len(part))), part...)) // it never fails
	}
	_, _ = sum.Write(value)
	return base64.RawStdEncoding.EncodeToString(sum.Sum(nil))
}

// annotations are those of a record.
func (m *MAC) annotations(name, key string, value []byte) map[string]string {
	if m == nil {
		return nil
	}
	return map[string]string{macAnnotation: m.of(name, key, value)}
}

// accepts reports whether a record was written by an API server. One that was not is reported once.
func (m *MAC) accepts(ctx context.Context, r *record) bool {
	if m == nil {
		return true
	}
	given, signed := r.Metadata.Annotations[macAnnotation]
	if !signed && !m.enforced.Load() || signed && hmac.Equal([]byte(given), []byte(m.of(r.Metadata.Name, r.Key, r.Value))) {
		return true
	}
	if before, known := m.refused.Swap(r.Metadata.Name, r.Metadata.ResourceVersion); !known || before != r.Metadata.ResourceVersion {
		klog.FromContext(ctx).Error(nil, "A stored record was not written by an API server of Credence, and is ignored", "record", r.Metadata.Name, "signed", signed)
	}
	return false
}
