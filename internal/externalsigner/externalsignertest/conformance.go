package externalsignertest

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

// Subject is a signer that is tested.
type Subject struct {
	// Socket is where it listens.
	Socket string
	// Claims returns claims that it signs at the time of the call.
	Claims func() []byte
}

// Run tests that a signer conforms to the external signer API and works with Client.
func Run(t *testing.T, subject Subject) {
	client := testkit.Need(externalsigner.New(externalsigner.Config{Socket: subject.Socket, Timeout: 5 * time.Minute}))(t)
	t.Cleanup(func() { _ = client.Close() })
	announced := testkit.Need(client.Keys(t.Context()))(t)

	t.Run("it announces the same keys again", func(t *testing.T) {
		again := testkit.Need(client.Keys(t.Context()))(t)
		if diff := cmp.Diff(ids(announced), ids(again)); diff != "" {
			t.Errorf("kids (-first +second):\n%s", diff)
		}
	})

	t.Run("it returns the time at which it read its keys", func(t *testing.T) {
		if at := announced.DataTimestamp; at.After(time.Now().Add(time.Second)) {
			t.Errorf("it read its keys at %s, which is not past", at)
		}
	})

	t.Run("it returns the longest lifetime of its tokens", func(t *testing.T) {
		testkit.Expect(t, testkit.Err(client.MaxLifetime(t.Context())))
	})

	t.Run("it signs the claims as they are, with a key that it publishes", func(t *testing.T) {
		claims := subject.Claims()
		signed := testkit.Need(client.Sign(t.Context(), announced, claims, keys.Algorithms()))(t)
		segments := strings.Split(signed.Token.Reveal(), ".")
		if len(segments) != 3 || segments[1] != base64.RawURLEncoding.EncodeToString(claims) {
			t.Errorf("a token of %d segments, and of other claims", len(segments))
		}
		if !slices.Contains(ids(announced), signed.KeyID) {
			t.Errorf("it was signed with %s, which is not announced", signed.KeyID)
		}
	})

	t.Run("an algorithm that is not taken is refused", func(t *testing.T) {
		signed, err := client.Sign(t.Context(), announced, subject.Claims(), nil)
		if reason, _ := externalsigner.ReasonOf(err); reason != externalsigner.ReasonAlgorithmRefused || !signed.Token.IsZero() {
			t.Errorf("%v, want %s", err, externalsigner.ReasonAlgorithmRefused)
		}
	})

	t.Run("it signs for many at once", func(t *testing.T) {
		var group errgroup.Group
		for range 64 {
			group.Go(func() error {
				_, err := client.Sign(t.Context(), announced, subject.Claims(), keys.Algorithms())
				return err
			})
		}
		testkit.Expect(t, group.Wait())
	})

	t.Run("a caller that has gone gets nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := client.Sign(ctx, announced, subject.Claims(), keys.Algorithms())
		if reason, _ := externalsigner.ReasonOf(err); reason != externalsigner.ReasonCanceled {
			t.Errorf("%v, want %s", err, externalsigner.ReasonCanceled)
		}
	})
}

func ids(announced externalsigner.Announcement) []identity.KeyID {
	var list []identity.KeyID
	for _, key := range announced.Published {
		list = append(list, key.ID)
	}
	slices.Sort(list)
	return list
}
