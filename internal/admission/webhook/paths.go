package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/credence-id/credence/internal/liveread"
)

const (
	// readPathsEvery is how often the configurations are read; a path that is not known has them read sooner.
	readPathsEvery = 10 * time.Second
	// readPathsPause is the least time between two reads, however many unknown paths are requested.
	readPathsPause = time.Second
	// secretBytes is how many random bytes a path has.
	secretBytes = 32
)

// Paths are the paths of reviews where the API server shows no certificate: /<secret>/pods in place of /pods. A secret is known only
// to readers of the webhook configurations, where Paths writes it and replaces it from time to time. All replicas read
// it there.
type Paths struct {
	client dynamic.Interface
	period time.Duration
	now    func() time.Time
	random io.Reader
	log    *slog.Logger
	reads  liveread.Reads[struct{}, struct{}]

	// began is when the last read began, and found is what each configuration had then. Reads are one after the other.
	began    time.Time
	found    map[string]pathState
	accepted atomic.Pointer[map[[sha256.Size]byte]bool]
	last     atomic.Pointer[pathsRead]
}

// pathsRead is what came of the last read.
type pathsRead struct {
	err  error     // why the path of a configuration is not known
	good time.Time // of the last complete read, or zero
}

var errPathsNotRead = errors.New("the webhook configurations have not been read yet")

// NewPaths returns the Paths of the cluster of client. Each secret is replaced after a period, and answered for a while beside the
// next one.
func NewPaths(client dynamic.Interface, period time.Duration, now func() time.Time, random io.Reader, log *slog.Logger) *Paths {
	p := &Paths{client: client, period: period, now: now, random: random, log: log, found: map[string]pathState{}}
	p.accepted.Store(&map[[sha256.Size]byte]bool{})
	p.last.Store(&pathsRead{err: errPathsNotRead})
	return p
}

// reread reads, a moment after the last read at the earliest, for all who wait for it.
func (p *Paths) reread(ctx context.Context) error {
	_, err := p.reads.Get(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) {
		select {
		case <-time.After(readPathsPause - p.now().Sub(p.began)):
		case <-ctx.Done():
			return struct{}{}, context.Cause(ctx)
		}
		p.began = p.now()
		unknown, unwritten := p.read(ctx)
		good := p.began
		if unknown != nil {
			good = p.last.Load().good
		}
		p.last.Store(&pathsRead{unknown, good})
		return struct{}{}, errors.Join(unknown, unwritten)
	})
	return err
}

// Run keeps the paths until ctx is done.
func (p *Paths) Run(ctx context.Context) error {
	tick := time.NewTicker(readPathsEvery)
	defer tick.Stop()
	for {
		if err := p.reread(ctx); err != nil && ctx.Err() == nil {
			p.log.ErrorContext(ctx, "paths of reviews can't be read or replaced: those that are known are still answered", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Ready returns nil once all configurations that exist were found to have paths that are answered, until another replica may have
// replaced one since: a read that fails now and then does not take all replicas away at once.
func (p *Paths) Ready() error {
	last := p.last.Load()
	if !last.good.IsZero() && p.now().Sub(last.good) < overlap(p.period) {
		return nil
	}
	return last.err
}

// Handler passes requests at a secret path to next, and answers anything else with 404.
func (p *Paths) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if !p.known(r.Context(), secret) {
			http.NotFound(w, r)
			return
		}
		http.StripPrefix("/"+secret, next).ServeHTTP(w, r)
	})
}

// AtAnyPath passes requests on at paths with a secret, whatever it is, and without one. It is for an API server that shows a certificate: a replica that
// ends may have written a secret path into a configuration once more, and no later replica takes that away.
func AtAnyPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if secret, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); isSecret(secret) {
			http.StripPrefix("/"+secret, next).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// known reports whether a secret is one of a configuration. One that is not known may have been written a moment ago, by another
// replica: it waits for the next read.
func (p *Paths) known(ctx context.Context, secret string) bool {
	if !isSecret(secret) {
		return false
	}
	key := sha256.Sum256([]byte(secret)) // so that the time of a comparison shows nothing
	if (*p.accepted.Load())[key] {
		return true
	}
	_ = p.reread(ctx) // Run logs why one can't be read; another may have been
	return (*p.accepted.Load())[key]
}

// secretEncoding makes a label of DNS of a secret: each part of the path of a Service must be one.
var secretEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

func isSecret(text string) bool {
	raw, err := secretEncoding.DecodeString(text)
	return err == nil && len(raw) == secretBytes
}

// Configurations are those whose webhooks are answered here, by resource. A missing one is skipped.
func Configurations() map[string][]string {
	return map[string][]string{
		"mutatingwebhookconfigurations":   {"credence-webhook", "zz-credence-gmsa", "zz-credence-gmsa-annotations"},
		"validatingwebhookconfigurations": {"credence-finished-pods", "credence-templates", "credence-quotas", "credence-gmsa", "credence-gmsa-annotations", "credence-gmsa-require-user"},
	}
}

// read reads all configurations, gives those new paths that are due, and accepts what it found. Of one that can't be read, what was
// found before is still accepted. It returns why the paths of some are not known, and why known ones could not be replaced.
func (p *Paths) read(ctx context.Context) (unknown, unwritten error) {
	for resource, names := range Configurations() {
		configurations := p.client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
		for _, name := range names {
			found, err := p.keep(ctx, configurations, name)
			if err != nil {
				err = fmt.Errorf("%s %s: %w", resource, name, err)
			}
			if found != nil && found.current != "" {
				unwritten = errors.Join(unwritten, err)
			} else {
				unknown = errors.Join(unknown, err)
			}
			if found != nil {
				p.found[resource+"/"+name] = *found
			} else if err == nil {
				delete(p.found, resource+"/"+name)
			}
		}
	}
	accepted := map[[sha256.Size]byte]bool{}
	for found := range maps.Values(p.found) {
		for _, secret := range found.answered(p.now(), p.period) {
			accepted[sha256.Sum256([]byte(secret))] = true
		}
	}
	p.accepted.Store(&accepted)
	return unknown, unwritten
}

// keep returns the paths of one configuration, or nil if it is missing or unreadable, and gives it a new path where that is
// due; an error beside the paths is of that write.
func (p *Paths) keep(ctx context.Context, configurations dynamic.ResourceInterface, name string) (*pathState, error) {
	object, err := configurations.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explained(err)
	}
	has, ours := pathsOf(object)
	if !ours {
		return nil, nil
	}
	next, due := has.next(p.now(), p.period, p.secret)
	if !due {
		return &has, nil
	}
	next.write(object)
	_, err = configurations.Update(ctx, object, metav1.UpdateOptions{FieldManager: "credence-webhook"})
	switch {
	case err == nil:
		p.log.InfoContext(ctx, "the path of reviews was replaced", "configuration", name)
		return &next, nil
	case apierrors.IsConflict(err): // another replica was faster: its secret is read once it is requested
		return &has, nil
	}
	return &has, explained(err)
}

func explained(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("install deploy/options/review-paths.yaml, or give --client-ca-file: %w", err)
	}
	return err
}

func (p *Paths) secret() string {
	raw := make([]byte, secretBytes)
	if _, err := io.ReadFull(p.random, raw); err != nil {
		panic(fmt.Sprintf("read random bytes: %v", err)) // crypto/rand ends the program itself
	}
	return secretEncoding.EncodeToString(raw)
}
