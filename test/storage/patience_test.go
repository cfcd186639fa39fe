package storage_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// patience is what no machine needs.
const patience = 5 * time.Minute

// patient gives a storage the time that some functions of the suite don't: a seventh of a second for each event after a creation, and one
// for a buffer to be filled.
type patient struct {
	storage.Interface
	mu      sync.Mutex
	created []string // keys
}

func (p *patient) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	err := p.Interface.Create(context.WithoutCancel(ctx), key, object, out, ttl)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.created = append(p.created, key)
	}
	return err
}

func (p *patient) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	w, err := p.Interface.Watch(ctx, key, options)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	patient := &patientWatch{Interface: w, storage: p, prefix: key, begun: len(p.created), events: make(chan watch.Event, 1000), seen: map[string]bool{}}
	go patient.forward()
	return patient, nil
}

// patientWatch hands its channel out once all that was created since it began is in it.
type patientWatch struct {
	watch.Interface
	storage *patient
	prefix  string
	begun   int // of what was created
	events  chan watch.Event
	seen    map[string]bool // keys, with the lock of the storage
}

func (w *patientWatch) forward() {
	defer close(w.events)
	for event := range w.Interface.ResultChan() {
		w.events <- event
		if pod, ok := event.Object.(*example.Pod); ok {
			w.storage.mu.Lock()
			w.seen["/pods/"+pod.Namespace+"/"+pod.Name] = true
			w.storage.mu.Unlock()
		}
	}
}

// complete reports whether all that was created under the prefix has been seen.
func (w *patientWatch) complete() bool {
	w.storage.mu.Lock()
	defer w.storage.mu.Unlock()
	for _, key := range w.storage.created[w.begun:] {
		if strings.HasPrefix(key, w.prefix+"/") && !w.seen[key] {
			return false
		}
	}
	return true
}

func (w *patientWatch) ResultChan() <-chan watch.Event {
	for begun := time.Now(); !w.complete() && time.Since(begun) < patience; {
		time.Sleep(time.Millisecond)
	}
	return w.events
}

// filled stops a watch once there is as much in its buffer as RunTestDelayedWatchDelivery wants.
type filled struct{ storage.Interface }

func (f filled) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	w, err := f.Interface.Watch(ctx, key, options)
	return filledWatch{w}, err
}

type filledWatch struct{ watch.Interface }

func (w filledWatch) Stop() {
	for begun := time.Now(); len(w.ResultChan()) < 10 && time.Since(begun) < patience; {
		time.Sleep(time.Millisecond)
	}
	w.Interface.Stop()
}
