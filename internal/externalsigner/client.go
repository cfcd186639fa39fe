package externalsigner

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"github.com/credence-id/credence/internal/identity"
)

const (
	// DefaultTimeout is how long a call of the signer may take.
	DefaultTimeout = 5 * time.Second
	// maxSocketPath is what the shortest sockaddr_un of the systems we run on holds, in bytes.
	maxSocketPath = 103
	// maxResponseSize is several times the largest good answer.
	maxResponseSize = 1 << 20
	// shortestMaxLifetime is the least that the external signer API allows a signer to offer.
	shortestMaxLifetime = identity.ShortestLifetime
	// longestMaxLifetime is the longest lifetime that Kubernetes can represent.
	longestMaxLifetime = (1 << 32) * time.Second
)

// retries is a gRPC service config (grpc/grpc-proto, service_config.proto).
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 4, "retryableStatusCodes": ["UNAVAILABLE"]
}}]}`

// Config is what a Client needs.
type Config struct {
	// Socket is the absolute path of the unix socket that the signer listens on.
	Socket string
	// Timeout bounds each call, also while the signer is away; 0 stands for DefaultTimeout.
	Timeout time.Duration
}

// Client calls one signer. It connects on first use, and again whenever the connection breaks. It is safe for concurrent use.
type Client struct {
	socket     string
	timeout    time.Duration
	connection *grpc.ClientConn
	signer     externaljwt.ExternalJWTSignerClient
}

// New returns a Client; the error names the setting that is wrong. The signer need not be there yet.
func New(config Config) (*Client, error) {
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	switch {
	case !filepath.IsAbs(config.Socket):
		return nil, fmt.Errorf("socket %q of the external signer must be an absolute path", config.Socket)
	case len(config.Socket) > maxSocketPath:
		return nil, fmt.Errorf("socket %s of the external signer: %d bytes are too long for a unix socket, at most %d are possible", config.Socket, len(config.Socket), maxSocketPath)
	case config.Timeout < 0:
		return nil, fmt.Errorf("timeout %s of the external signer is negative", config.Timeout)
	}
	connection, err := grpc.NewClient("passthrough:///external-signer",
		// gRPC would read the path as a URL.
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", config.Socket)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithNoProxy(),
		// A call that comes while the signer restarts waits for it within its deadline.
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxResponseSize)),
		// A call on a broken connection is repeated: signing twice and fetching twice are harmless.
		grpc.WithDefaultServiceConfig(retries),
		// The standard pauses grow to two minutes, which would leave a signer that is back unused.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: config.Timeout,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("socket %s of the external signer: %w", config.Socket, err)
	}
	return &Client{
		socket: config.Socket, timeout: config.Timeout,
		connection: connection, signer: externaljwt.NewExternalJWTSignerClient(connection),
	}, nil
}

// Close breaks the connection; calls in flight fail.
func (c *Client) Close() error { return c.connection.Close() }

// Keys returns what the signer announces now. Errors are *Error.
func (c *Client) Keys(ctx context.Context) (Announcement, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.signer.FetchKeys(ctx, &externaljwt.FetchKeysRequest{})
	if err != nil {
		return Announcement{}, c.failure("fetch keys", err)
	}
	return parseAnnouncement(response)
}

// MaxLifetime returns the longest lifetime of a token that the signer signs. Errors are *Error.
func (c *Client) MaxLifetime(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.signer.Metadata(ctx, &externaljwt.MetadataRequest{})
	if err != nil {
		return 0, c.failure("fetch metadata", err)
	}
	seconds := response.GetMaxTokenExpirationSeconds()
	if seconds < int64(shortestMaxLifetime/time.Second) {
		return 0, refuse(ReasonMetadata, "the signer signs tokens of at most %d seconds, it must be at least %s", seconds, shortestMaxLifetime)
	}
	return time.Duration(min(seconds, int64(longestMaxLifetime/time.Second))) * time.Second, nil
}

// Signed is a token whose header and signature were checked.
type Signed struct {
	Token identity.Token
	// KeyID and Algorithm are those of the header; the signer has chosen them.
	KeyID     identity.KeyID
	Algorithm identity.Algorithm
}

// Sign has claims (the payload of a JWT: JSON) signed with a key of the signer's choice. The answer must be under a key that
// the announcement publishes, with the algorithm of that key, which must be among those accepted, and verify. Whether
// relying parties know the key yet is decided by Ledger.MaySign. Errors are *Error.
func (c *Client) Sign(ctx context.Context, announced Announcement, claims []byte, accepted []identity.Algorithm) (Signed, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	payload := base64.RawURLEncoding.EncodeToString(claims)
	response, err := c.signer.Sign(ctx, &externaljwt.SignJWTRequest{Claims: payload})
	if err != nil {
		return Signed{}, c.failure("sign token", err)
	}
	parsed, err := parseHeader(response.GetHeader())
	if err != nil {
		return Signed{}, err
	}
	key, err := announced.published(parsed.KeyID)
	switch {
	case err != nil:
		return Signed{}, err
	case parsed.Algorithm != key.Algorithm:
		return Signed{}, refuse(ReasonAlgorithmOfOtherKey, "the signer's header has alg %s, but key %.64q is for %s", parsed.Algorithm, key.ID, key.Algorithm)
	case !slices.Contains(accepted, key.Algorithm):
		return Signed{}, refuse(ReasonAlgorithmRefused, "the signer signs with %s, but the token is for a system that takes %q only", key.Algorithm, accepted)
	}
	signed := response.GetHeader() + "." + payload
	if err := verify(key, signed, response.GetSignature()); err != nil {
		return Signed{}, err
	}
	return Signed{Token: identity.NewToken(signed + "." + response.GetSignature()), KeyID: key.ID, Algorithm: key.Algorithm}, nil
}

// failure is the error of a call without an answer.
func (c *Client) failure(operation string, err error) *Error {
	result := status.Convert(err)
	failed := func(reason Reason, format string, args ...any) *Error {
		return refuse(reason, "%s by the external signer at %s: %s", operation, c.socket, fmt.Sprintf(format, args...))
	}
	switch state := c.connection.GetState(); {
	case result.Code() == codes.Canceled || errors.Is(err, context.Canceled):
		return failed(ReasonCanceled, "the caller has gone")
	case result.Code() == codes.DeadlineExceeded && state == connectivity.Ready:
		return failed(ReasonTimeout, "no answer in time")
	case result.Code() == codes.DeadlineExceeded, result.Code() == codes.Unavailable && state != connectivity.Ready:
		return failed(ReasonUnreachable, "no answer on the socket: see that the signer runs, and that this user may reach its socket")
	default:
		return failed(ReasonRefused, "%s: %.200q", result.Code(), result.Message())
	}
}
