package service

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	externaljwt "k8s.io/externaljwt/apis/v1"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

const (
	// DefaultRefreshHint is how long kube-apiserver keeps the keys: after a key was revoked it still takes tokens of it for
	// as long.
	DefaultRefreshHint = time.Minute
	// shortestRefreshHint is while a change can come at any moment.
	shortestRefreshHint = time.Second
	// shortestMaxLifetime is the least that kube-apiserver takes of a signer.
	shortestMaxLifetime = identity.ShortestLifetime
	// maxAhead is how far an iat may be in the future. kube-apiserver has the clock of this machine.
	maxAhead = 10 * time.Second
)

// Config is what a Service needs; Issuer, Ring and Clock are required.
type Config struct {
	// Issuer is the only iss of which claims are signed.
	Issuer string
	// Algorithm is that of all signatures; empty stands for RS256, which every relying party takes.
	Algorithm identity.Algorithm
	// Ring returns the last good ring, whose keys are announced, and a time before it was read. ok is false before the first.
	Ring func() (ring keys.Ring, readAt time.Time, ok bool)
	// Signing returns the ring to sign with, likewise; nil stands for Ring.
	Signing func() (ring keys.Ring, readAt time.Time, ok bool)
	// NextChange returns when the announced keys change next, zero if that is not known; nil: never known.
	NextChange func() time.Time
	// MaxLifetime is the longest lifetime of a token; 0 stands for keys.DefaultMaxLifetime. The ring may allow less.
	MaxLifetime time.Duration
	// RefreshHint is the longest time for which announced keys may be kept: whole seconds; 0 stands for DefaultRefreshHint.
	RefreshHint time.Duration
	Clock       clock.PassiveClock
	Log         *slog.Logger // nil: logs nothing
	Recorder    *Recorder
}

// Service answers the external signer API. It is safe for concurrent use.
type Service struct {
	externaljwt.UnimplementedExternalJWTSignerServer
	config    Config
	announced atomic.Pointer[[]identity.KeyID]
}

// New returns a Service; the error names the setting that is missing or invalid.
func New(config Config) (*Service, error) {
	config.Algorithm = cmp.Or(config.Algorithm, identity.RS256)
	if config.Signing == nil {
		config.Signing = config.Ring
	}
	if config.NextChange == nil {
		config.NextChange = func() time.Time { return time.Time{} }
	}
	config.MaxLifetime = cmp.Or(config.MaxLifetime, keys.DefaultMaxLifetime)
	config.RefreshHint = cmp.Or(config.RefreshHint, DefaultRefreshHint)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case config.Issuer == "":
		return nil, errors.New("a signer needs the issuer whose tokens it signs")
	case !slices.Contains(keys.Algorithms(), config.Algorithm):
		return nil, fmt.Errorf("algorithm %.64q is unknown, it must be one of %q", config.Algorithm, keys.Algorithms())
	case config.Ring == nil || config.Clock == nil:
		return nil, errors.New("a signer needs a ring of keys and a clock")
	case config.MaxLifetime < shortestMaxLifetime:
		return nil, fmt.Errorf("maximum token lifetime %s is shorter than the %s that kube-apiserver needs", config.MaxLifetime, shortestMaxLifetime)
	case config.RefreshHint < shortestRefreshHint || config.RefreshHint%time.Second != 0:
		return nil, fmt.Errorf("refresh hint %s must be whole seconds, at least %s", config.RefreshHint, shortestRefreshHint)
	}
	return &Service{config: config}, nil
}

// refusal is the reason why claims are not signed. message has the correction.
type refusal struct {
	outcome Outcome
	code    codes.Code
	message string
}

func refuse(outcome Outcome, code codes.Code, format string, args ...any) *refusal {
	return &refusal{outcome, code, fmt.Sprintf(format, args...)}
}

// Sign implements the external signer API.
func (s *Service) Sign(ctx context.Context, request *externaljwt.SignJWTRequest) (*externaljwt.SignJWTResponse, error) {
	began := s.config.Clock.Now()
	response, refused := s.sign(request.GetClaims())
	if refused != nil {
		s.config.Recorder.record(s.config.Algorithm, refused.outcome, 0)
		s.config.Log.WarnContext(ctx, "a token was not signed", "reason", string(refused.outcome), "code", refused.code.String(), "err", refused.message)
		return nil, status.Error(refused.code, refused.message)
	}
	s.config.Recorder.record(s.config.Algorithm, Signed, s.config.Clock.Since(began))
	return response, nil
}

func (s *Service) sign(payload string) (*externaljwt.SignJWTResponse, *refusal) {
	read, err := parseClaims(payload)
	if err != nil {
		return nil, refuse(MalformedClaims, codes.InvalidArgument, "claims: %v", err)
	}
	if read.issuer != s.config.Issuer {
		return nil, refuse(OtherIssuer, codes.PermissionDenied, "claims: iss is %.200q, but this signer has the keys of %q alone: let that be the first --service-account-issuer of kube-apiserver, or run a signer with other keys", read.issuer, s.config.Issuer)
	}
	key, refused := s.signingKey()
	if refused != nil {
		return nil, refused
	}
	if refused := s.checkTimes(read, key); refused != nil {
		return nil, refused
	}
	header, signature, err := sign(key, payload)
	if err != nil {
		return nil, refuse(Failed, codes.Internal, "%v", err)
	}
	return &externaljwt.SignJWTResponse{Header: header, Signature: signature}, nil
}

// signingKey returns the key that signs now, of a ring that can not have been replaced long ago.
func (s *Service) signingKey() (keys.Key, *refusal) {
	ring, readAt, ok := s.config.Signing()
	if !ok {
		return keys.Key{}, refuse(NoRing, codes.Unavailable, "the ring of keys can not be read: see the signer's log, and its folder of keys")
	}
	key, ok := ring.Signer(s.config.Algorithm)
	if !ok {
		return keys.Key{}, refuse(NoKey, codes.Unavailable, "no %s key may sign now, since one was revoked and the spare is not known to relying parties yet: try again later", s.config.Algorithm)
	}
	if !key.Terms.MaySign(readAt, s.config.Clock.Now()) {
		return keys.Key{}, refuse(NoRing, codes.Unavailable, "the ring of keys was last read at %s, and may have been replaced since: see the signer's log, and its folder of keys", readAt.UTC().Format(time.RFC3339))
	}
	return key, nil
}

// checkTimes refuses a token that would be valid for longer than its key stays published.
func (s *Service) checkTimes(read claims, key keys.Key) *refusal {
	now := s.config.Clock.Now()
	switch longest := s.maxLifetime(key); {
	case read.issuedAt.Sub(now) > maxAhead:
		return refuse(WrongTimes, codes.InvalidArgument, "claims: iat is %s, but it is %s: set the clock", read.issuedAt.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !read.expiry.After(now):
		return refuse(WrongTimes, codes.InvalidArgument, "claims: exp is past")
	case read.expiry.Sub(now) > longest:
		return refuse(WrongTimes, codes.InvalidArgument, "claims: the token would be valid for %s, at most %s are signed: give kube-apiserver no longer --service-account-max-token-expiration, or restart it if the signer allowed more before", read.expiry.Sub(now).Round(time.Second), longest)
	}
	return nil
}

// maxLifetime is the longest lifetime of a token that the key signs. From the terms it follows how long the key stays
// published.
func (s *Service) maxLifetime(key keys.Key) time.Duration {
	allowed := cmp.Or(key.Terms.MaxLifetime, keys.DefaultMaxLifetime)
	return min(allowed, s.config.MaxLifetime)
}

// FetchKeys implements the external signer API.
func (s *Service) FetchKeys(ctx context.Context, _ *externaljwt.FetchKeysRequest) (*externaljwt.FetchKeysResponse, error) {
	ring, readAt, ok := s.config.Ring()
	if !ok {
		return nil, s.fail(ctx, "keys were not announced", codes.Unavailable, "no ring of keys was read yet: see the signer's log, and its folder of keys")
	}
	response := &externaljwt.FetchKeysResponse{
		DataTimestamp:      timestamppb.New(readAt),
		RefreshHintSeconds: int64(s.refreshHint() / time.Second),
	}
	var announced []identity.KeyID
	for _, key := range ring.Published() {
		der, err := x509.MarshalPKIXPublicKey(key.Key)
		if err != nil {
			return nil, s.fail(ctx, "keys were not announced", codes.Internal, fmt.Sprintf("encode public key %s: %v", key.ID, err))
		}
		response.Keys = append(response.Keys, &externaljwt.Key{KeyId: string(key.ID), Key: der})
		announced = append(announced, key.ID)
	}
	s.announced.Store(&announced)
	return response, nil
}

// Announced are the keys of the last answer to FetchKeys, which kube-apiserver publishes; nil before the first. The caller
// owns the copy.
func (s *Service) Announced() []identity.KeyID {
	if announced := s.announced.Load(); announced != nil {
		return slices.Clone(*announced)
	}
	return nil
}

// Ready returns nil if a token would be signed now, and otherwise the reason.
func (s *Service) Ready() error {
	if _, refused := s.signingKey(); refused != nil {
		return errors.New(refused.message)
	}
	return nil
}

// refreshHint is how long the announced keys may be cached; kube-apiserver repeats it for its documents. It never exceeds the
// time of the next change.
func (s *Service) refreshHint() time.Duration {
	next := s.config.NextChange()
	if next.IsZero() {
		return s.config.RefreshHint
	}
	left := next.Sub(s.config.Clock.Now()).Truncate(time.Second)
	return max(shortestRefreshHint, min(left, s.config.RefreshHint))
}

// Metadata implements the external signer API.
func (s *Service) Metadata(ctx context.Context, _ *externaljwt.MetadataRequest) (*externaljwt.MetadataResponse, error) {
	longest := s.config.MaxLifetime
	if ring, _, ok := s.config.Ring(); ok {
		if key, ok := ring.Signer(s.config.Algorithm); ok {
			longest = s.maxLifetime(key)
		}
	}
	return &externaljwt.MetadataResponse{MaxTokenExpirationSeconds: int64(longest / time.Second)}, nil
}

func (s *Service) fail(ctx context.Context, what string, code codes.Code, message string) error {
	s.config.Log.WarnContext(ctx, what, "code", code.String(), "err", message)
	return status.Error(code, message)
}
