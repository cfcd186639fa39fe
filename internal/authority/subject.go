package authority

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Subject is a user of a cluster, as its API server authenticated them. Its JSON form is the userInfo of Kubernetes.
type Subject struct {
	Name   string              `json:"username"`
	UID    string              `json:"uid"`
	Groups []string            `json:"groups"`
	Extra  map[string][]string `json:"extra"`
}

const (
	accountPrefix = "system:serviceaccount:"
	accountGroup  = "system:serviceaccounts"
)

// ServiceAccount is a service account in the groups by which admission policies know it: a right of all who are authenticated would
// be one of every pod. The uid may be empty.
func ServiceAccount(namespace, name, uid string) Subject {
	return Subject{Name: AccountName(namespace, name), UID: uid, Groups: []string{accountGroup, accountGroup + ":" + namespace}}
}

// AccountName is the name of a service account as a user.
func AccountName(namespace, name string) string { return accountPrefix + namespace + ":" + name }

// In returns the subject as a member of one more group.
func (s Subject) In(group string) Subject {
	s.Groups = append(slices.Clip(s.Groups), group)
	return s
}

// AppendKey appends a text that no other subject has.
func (s Subject) AppendKey(key []byte) []byte {
	key = AppendTexts(key, s.Name, s.UID)
	key = AppendTexts(key, s.Groups...)
	if len(s.Extra) == 0 {
		return key
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extra)) {
		key = AppendTexts(AppendTexts(key, name), s.Extra[name]...)
	}
	return key
}

// AppendTexts appends a list of texts, each with its length and the list with its own: different lists never give the same key.
func AppendTexts(key []byte, texts ...string) []byte {
	key = binary.AppendUvarint(key, uint64(len(texts)))
	for _, text := range texts {
		key = binary.AppendUvarint(key, uint64(len(text)))
		key = append(key, text...)
	}
	return key
}
