package keys

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/test/testkit"
)

// Two people who have seen the same keys and rotate at the same time get one rotation: the second one is refused.
func TestTwoRotationsAtOnceAreOne(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "ring")
	store, err := keystore.OpenDirectory(directory)
	testkit.Must(t, err)
	if _, _, err := keystore.LoadOrBootstrap(t.Context(), store, keys.NewPrivate, rotationTime().Add(-240*time.Hour)); err != nil {
		t.Fatal(err)
	}
	settings, err := keys.Settings{}.Complete()
	testkit.Must(t, err)
	ring, err := openDirectoryRing(directory, settings, rotationTime)
	testkit.Must(t, err)
	seen, err := ring.read(t.Context())
	testkit.Must(t, err)
	var out bytes.Buffer
	terminal := screen.New(genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, rotationTime, nil)
	once := func() error {
		r := &rotate{ringChoice: newRingChoice(terminal, nil), now: true, acceptRefusals: true}
		return r.rotate(t.Context(), ring, []*rotation{{
			seen: seen, command: func(name string) string { return "credence keys " + name },
			spec: v1alpha1.KeyRotationSpec{Algorithm: "ES256", ActiveKey: activeKey(seen, "ES256"), Now: true, AcceptRefusals: true},
		}})
	}
	testkit.Must(t, once())
	rotated, _, err := store.Load(t.Context())
	testkit.Must(t, err)
	err = once()
	if refusedFor(err) != keys.AlreadyDone || command.ExitCode(err) != command.ExitRefused || !strings.HasPrefix(command.AsFailure(err).Hint, "another rotation came first") {
		t.Errorf("the second rotation: %v", err)
	}
	after, _, err := store.Load(t.Context())
	testkit.Must(t, err)
	before, _ := rotated.Signer(identity.ES256)
	if now, _ := after.Signer(identity.ES256); now.ID != before.ID {
		t.Errorf("%s signs, want %s, by the first rotation", now.ID, before.ID)
	}
}

func rotationTime() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }
