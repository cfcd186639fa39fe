package source

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// The follower is the reflector's store: it publishes and keeps nothing but the newest object.
var _ cache.ReflectorStore = (*follower)(nil)

// Add implements cache.ReflectorStore.
func (f *follower) Add(object any) error { return f.Update(object) }

// Update implements cache.ReflectorStore.
func (f *follower) Update(object any) error {
	if configMap, ok := object.(*corev1.ConfigMap); ok && f.wanted(configMap) {
		f.consider(configMap)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (f *follower) Delete(object any) error {
	if configMap, ok := object.(*corev1.ConfigMap); ok && f.wanted(configMap) {
		f.missing()
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *follower) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if configMap, ok := object.(*corev1.ConfigMap); ok && f.wanted(configMap) {
			f.consider(configMap)
			return nil
		}
	}
	f.missing()
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *follower) Resync() error { return nil }

// wanted does not rely on the server having read the selector.
func (f *follower) wanted(configMap *corev1.ConfigMap) bool {
	return configMap.Namespace == f.source.namespace && configMap.Name == f.source.name
}
