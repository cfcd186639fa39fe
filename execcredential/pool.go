package execcredential

import (
	"container/list"
	"context"
	"crypto/sha256"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

// Pool is an instance of the library. Equal configs have one Source in it. All methods are safe for concurrent use. Only NewPool makes one.
type Pool struct {
	options Options
	plain   plainHTTPHosts
	life    context.Context // ends with Close; runs are children of it
	end     context.CancelFunc
	closed  atomic.Bool

	mu         sync.Mutex
	runs       sync.WaitGroup
	sources    map[[sha256.Size]byte]*list.Element
	order      *list.List // of *remembered; the last used one first
	transports map[transportKey]weak.Pointer[Transport]
}

// transportKey is what a Transport is made of, so that asking again gives the same one with its connections. Accounts of several
// sources are not shared.
type transportKey struct {
	source *Source
	base   weak.Pointer[http.Transport]
	own    *Account // of several sources
}

type remembered struct {
	key    [sha256.Size]byte
	source *Source
}

// NewPool returns a Pool, or a *ConfigError. It must be closed.
func NewPool(o Options) (*Pool, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	plain, err := newPlainHTTPHosts(o.PlainHTTPHosts)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &Pool{
		options:    o.withDefaults(),
		plain:      plain,
		life:       life,
		end:        end,
		sources:    map[[sha256.Size]byte]*list.Element{},
		order:      list.New(),
		transports: map[transportKey]weak.Pointer[Transport]{},
	}, nil
}

// Source returns the source of credentials from the program that c names: the same one for equal configs. It runs nothing yet. Errors
// are *ConfigError, *PlainHTTPError for a Cluster.Server without TLS that is not in Options.PlainHTTPHosts, and ErrClosed.
func (p *Pool) Source(c Config) (*Source, error) {
	if p.empty() {
		return nil, &ConfigError{Field: "pool", Reason: "is nil or empty; NewPool makes one"}
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if u := c.Cluster.url(); u != nil {
		if err := p.plain.check(u); err != nil {
			return nil, err
		}
	}
	key := c.fingerprint()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return nil, ErrClosed
	}
	if e, ok := p.sources[key]; ok {
		p.order.MoveToFront(e)
		return e.Value.(*remembered).source, nil
	}
	if !c.ProvideClusterInfo {
		c.Cluster = Cluster{} // certificate authorities are large, and the program never sees them
	}
	c = c.clone()
	var provider Provider = staticProvider{c.Static, p.options.Clock}
	if c.Static.empty() {
		provider = newProgram(c, p.options)
	}
	s := &Source{pool: p, provider: &provider, config: &c}
	p.sources[key] = p.order.PushFront(&remembered{key, s})
	if p.order.Len() > p.options.MaxSources {
		oldest := p.order.Back()
		delete(p.sources, p.order.Remove(oldest).(*remembered).key)
	}
	return s, nil
}

// SourceOf returns a source of the credentials that Go code makes. Each call returns another one. If provider is nil, each use of the source
// is a *ConfigError.
func (p *Pool) SourceOf(provider Provider) *Source {
	if p.empty() {
		return &Source{}
	}
	if provider == nil {
		provider = ProviderFunc(nil)
	}
	return &Source{pool: p, provider: &provider, config: &Config{}}
}

// empty reports whether NewPool has not made p.
func (p *Pool) empty() bool { return p == nil || p.life == nil }

// Len is how many sources p remembers.
func (p *Pool) Len() int {
	if p.empty() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order.Len()
}

// Close ends what runs, with all that it started, and waits until it has ended. Waiting callers get ErrClosed. Idle connections of
// transports are closed, busy ones when they become idle. It may be called more than once.
func (p *Pool) Close() error {
	if p.empty() {
		return nil
	}
	p.mu.Lock()
	p.closed.Store(true)
	var sources []*Source
	for e := p.order.Front(); e != nil; e = e.Next() {
		sources = append(sources, e.Value.(*remembered).source)
	}
	clear(p.sources)
	p.order.Init()
	var open []*Transport
	for _, pointer := range p.transports {
		if t := pointer.Value(); t != nil {
			open = append(open, t)
		}
	}
	p.mu.Unlock()

	p.end()
	p.runs.Wait()
	for _, t := range open {
		t.slots.retire()
		sources = append(sources, t.presenter.account.sources...) // those of providers, and those that were forgotten
	}
	for _, s := range sources {
		s.forget()
	}
	return nil
}

// enter counts a run that Close waits for. It is false if the pool is closed.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return false
	}
	p.runs.Add(1)
	return true
}

func (p *Pool) leave() { p.runs.Done() }

// transport returns the Transport of a and base. It is known here for as long as a caller holds it; after that, its idle
// connections are closed.
func (p *Pool) transport(a *Account, base *http.Transport) *Transport {
	key := transportKey{source: a.sources[0], base: weak.Make(base)}
	if len(a.sources) > 1 {
		key.own = a
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.transports[key].Value(); t != nil {
		return t
	}
	t := newTransport(a, base)
	pointer := weak.Make(t)
	p.transports[key] = pointer
	runtime.AddCleanup(t, func(s slots) {
		s.retire()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.transports[key] == pointer {
			delete(p.transports, key)
		}
	}, t.slots)
	return t
}
