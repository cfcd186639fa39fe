package execcredential

import (
	"sync/atomic"
	"time"
)

const (
	firstRejection = 10 * time.Second
	lastRejection  = 5 * time.Minute
)

// rejections bound how often servers can cause runs by answering 401: once, then not for ten seconds; and as long as a server keeps doing
// it, twice as long each time, up to five minutes. Each server has a budget of its own, which begins anew when it takes another credential
// than the one that it refused. Keys that do not sign have one too, that of the empty name.
type rejections struct {
	servers map[string]*rejection
	open    atomic.Int32 // how many servers there are, for readers without the lock
}

type rejection struct {
	interval time.Duration
	last     time.Time
	refused  *Credential
}

// over reports whether the server was silent for so long that its next rejection is a first one.
func (r *rejection) over(now time.Time) bool { return now.Sub(r.last) >= 2*r.interval }

func (r *rejections) allow(server string, now time.Time) bool {
	known := r.servers[server]
	return known == nil || now.Sub(known.last) >= known.interval
}

// ran counts a run because server refused a credential.
func (r *rejections) ran(server string, refused *Credential, now time.Time) {
	for other, known := range r.servers {
		if known.over(now) {
			delete(r.servers, other)
		}
	}
	known := r.servers[server]
	if known == nil {
		if r.servers == nil {
			r.servers = map[string]*rejection{}
		}
		known = &rejection{interval: firstRejection}
		r.servers[server] = known
	} else {
		known.interval = min(2*known.interval, lastRejection)
	}
	known.last, known.refused = now, refused
	r.open.Store(int32(len(r.servers)))
}

// accepted ends the budget of a server that took credential, unless that is the one that it refused: some servers take one now and then.
func (r *rejections) accepted(server string, credential *Credential) {
	if known := r.servers[server]; known != nil && !credential.Equal(known.refused) {
		delete(r.servers, server)
		r.open.Store(int32(len(r.servers)))
	}
}

func (r *rejections) forget() {
	clear(r.servers)
	r.open.Store(0)
}
