package keyring_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/registry/keyring"
	"github.com/credence-id/credence/internal/identity"
	operation "github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

const (
	issuer = "https://issuer.example.com"
	name   = v1alpha1.WorkloadIdentities
)

// server has a KeyRing in an etcd, and the ring of keystoretest in files.
type server struct {
	*keyring.REST
	status  *keyring.StatusREST
	storage apiservertest.Storage
	changed int // how often a status was written
	store   keystore.Store
	clock   *testingclock.FakePassiveClock
	ring    keys.Ring
}

// rings returns the storage of KeyRings of an API server with an issuer.
func rings(t *testing.T, storage apiservertest.Storage, of identity.Issuer, changed func()) (*keyring.REST, *keyring.StatusREST) {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	testkit.Must(t, err)
	options := storage.RESTOptions(scheme, apiserver.GroupVersions()...)
	stored, status, err := keyring.NewREST(scheme, options, of, changed)
	testkit.Must(t, err)
	t.Cleanup(stored.Destroy)
	return stored, status
}

func start(t *testing.T) *server {
	t.Helper()
	first, _ := keystoretest.Rings()
	directory := testkit.Need(keystore.OpenDirectory(filepath.Join(t.TempDir(), "keys")))(t)
	testkit.Must(t, directory.Save(t.Context(), first, ""))
	s := &server{storage: apiservertest.NewStorage(t), store: directory, ring: first, clock: testingclock.NewFakePassiveClock(keystoretest.Now().Add(time.Hour))}
	s.REST, s.status = rings(t, s.storage, issuer, func() { s.changed++ })
	testkit.Must(t, s.Ensure(t.Context(), name))
	return s
}

func (s *server) commands() keyring.Commands {
	return keyring.Commands{KeyRings: s.REST, Operator: operation.Operator{Store: s.store, Clock: s.clock, Generate: keystoretest.RSAOnce()}}
}

// change updates the KeyRing, or its status.
func change(ctx context.Context, of rest.Updater, change func(*v1alpha1.KeyRing)) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(*v1alpha1.KeyRing)
		change(changed)
		return changed, nil
	})
	_, _, err := of.Update(request.WithNamespace(ctx, ""), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	return err
}

func (s *server) stored(t *testing.T) *v1alpha1.KeyRing {
	t.Helper()
	found := testkit.Need(s.KeyRing(request.WithNamespace(t.Context(), ""), name))(t)
	return found
}

// warnings are those of one request.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// Users write the spec, and the key controller the status: neither changes what is the other's.
func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	s := start(t)
	both := func(ring *v1alpha1.KeyRing) {
		ring.Spec.RelyingParties = append(ring.Spec.RelyingParties, v1alpha1.RelyingParty{Name: "vault"})
		ring.Status.Signing = "abc"
	}
	testkit.Must(t, change(t.Context(), s.REST, both))
	got := s.stored(t)
	if len(got.Spec.RelyingParties) != 1 || got.Status.Signing != "" || got.Generation != 2 || s.changed != 0 {
		t.Errorf("spec %+v, status %+v, generation %d, %d changes", got.Spec, got.Status, got.Generation, s.changed)
	}
	testkit.Must(t, change(t.Context(), s.status, both))
	got = s.stored(t)
	if len(got.Spec.RelyingParties) != 1 || got.Status.Signing != "abc" || got.Generation != 2 || s.changed != 1 {
		t.Errorf("spec %+v, status %+v, generation %d, %d changes", got.Spec, got.Status, got.Generation, s.changed)
	}
	table, err := s.ConvertToTable(t.Context(), got, nil)
	if err != nil || table.Rows[0].Cells[4] != "abc" || table.Rows[0].Cells[7] != issuer {
		t.Errorf("table %+v, %v", table, err)
	}
}

func TestKeyRingsThatAreInvalid(t *testing.T) {
	s := start(t)
	id := string(s.ring.Keys[0].ID)
	party := func(names ...string) func(*v1alpha1.KeyRing) {
		return func(ring *v1alpha1.KeyRing) {
			for _, name := range names {
				ring.Spec.RelyingParties = append(ring.Spec.RelyingParties, v1alpha1.RelyingParty{Name: name})
			}
		}
	}
	knows := func(ids ...string) func(*v1alpha1.KeyRing) {
		return func(ring *v1alpha1.KeyRing) {
			ring.Spec.RelyingParties = []v1alpha1.RelyingParty{{Name: "vault", KnownKeys: ids}}
		}
	}
	for want, test := range map[string]func(*v1alpha1.KeyRing){
		"spec.relyingParties[1].name: Duplicate":         party("vault", "vault"),
		"spec.relyingParties[0].name: Invalid":           party("a b"),
		"spec.relyingParties: Too many":                  party(make([]string, 101)...),
		"spec.relyingParties[0].knownKeys[1]: Duplicate": knows(id, id),
		"spec.relyingParties[0].knownKeys[0]: Invalid":   knows("short"),
		"spec.relyingParties[0].knownKeys: Too many":     knows(make([]string, 51)...),
	} {
		if err := change(t.Context(), s.REST, test); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	testkit.Must(t, change(t.Context(), s.status, func(ring *v1alpha1.KeyRing) { ring.Status.Keys = []v1alpha1.KeyStatus{{ID: id}} }))
	var got warnings
	testkit.Must(t, change(warning.WithWarningRecorder(t.Context(), &got), s.REST, knows(id, string(s.ring.Keys[1].ID))))
	if len(got) != 1 || !strings.Contains(got[0], "knownKeys[1]: key "+string(s.ring.Keys[1].ID)+" is not published") {
		t.Errorf("warnings %q, want one of the key that is not published", got)
	}
}

// A storage belongs to one installation: its KeyRing has the issuer, and an API server of another one does not take it.
func TestStorageOfAnotherIssuerIsForeign(t *testing.T) {
	s := start(t)
	const another = "https://another.example.com"
	other, status := rings(t, s.storage, another, func() {})
	var foreign *keyring.Foreign
	if err := other.Ensure(t.Context(), name); !errors.As(err, &foreign) || foreign.Issuer != issuer {
		t.Errorf("another issuer: %v", err)
	}
	if err := change(t.Context(), status, func(ring *v1alpha1.KeyRing) { ring.Status.Signing = "abc" }); !apierrors.IsInvalid(err) {
		t.Errorf("a status of another installation: %v", err)
	}
	if err := other.Own(t.Context(), name, "https://third.example.com"); !errors.As(err, &foreign) {
		t.Errorf("an issuer in place of a third: %v", err)
	}
	testkit.Must(t, other.Own(t.Context(), name, issuer))
	if got := s.stored(t).Status.Issuer; got != another {
		t.Errorf("issuer %s, want %s", got, another)
	}
	if err := s.Ensure(t.Context(), name); !errors.As(err, &foreign) || foreign.Issuer != another {
		t.Errorf("the former issuer: %v", err)
	}
	testkit.Expect(t, other.Own(t.Context(), "missing", ""), "without a KeyRing")
}

// causes are the types of the causes of an API error.
func causes(err error) (types []metav1.CauseType) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			types = append(types, cause.Type)
		}
	}
	return types
}

func TestRotationChangesTheStoredRing(t *testing.T) {
	s := start(t)
	r := &keyring.RotationREST{Commands: s.commands()}
	ctx := apiservertest.As(t.Context(), "jane", "")
	rotate := func(spec v1alpha1.KeyRotationSpec, dryRun ...string) (*v1alpha1.KeyRotation, error) {
		obj, err := r.Create(ctx, name, &v1alpha1.KeyRotation{Spec: spec}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
		if err != nil {
			return nil, err
		}
		return obj.(*v1alpha1.KeyRotation), nil
	}
	history := func() []keys.Event {
		t.Helper()
		ring, _, err := s.store.Load(ctx)
		testkit.Must(t, err)
		return ring.History
	}
	if _, err := rotate(v1alpha1.KeyRotationSpec{Algorithm: "HS256"}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.algorithm: Unsupported value") {
		t.Errorf("another algorithm: %v", err)
	}
	if _, err := rotate(v1alpha1.KeyRotationSpec{Algorithm: "ES256", Now: true}); !apierrors.IsConflict(err) || len(causes(err)) != 1 {
		t.Errorf("at once, to a spare that relying parties may not know: %v", err)
	}
	before := len(history())
	asked := v1alpha1.KeyRotationSpec{Algorithm: "ES256", Reason: "a drill"}
	if dry, err := rotate(asked, metav1.DryRunAll); err != nil || dry.Status.NextAt == nil || len(history()) != before {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	rotation, err := rotate(asked)
	if err != nil || rotation.Name != name || rotation.Status.NextAt == nil {
		t.Fatalf("%+v, %v", rotation, err)
	}
	events := history()
	if len(events) == before || events[len(events)-1].By != "jane" || events[len(events)-1].Reason != "a drill" {
		t.Errorf("history %+v, want the user and the reason", events)
	}
	// By settings that contradict each other no key is changed.
	broken := func(ring *v1alpha1.KeyRing) {
		ring.Status.Settings = &v1alpha1.KeyRingSettings{RotationPeriod: metav1.Duration{Duration: -time.Second}}
	}
	testkit.Must(t, change(t.Context(), s.status, broken))
	if _, err := rotate(asked); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "its status has settings by which no key can be changed") {
		t.Errorf("with a negative period: %v", err)
	}
}

func TestRevocationChangesTheStoredRing(t *testing.T) {
	s := start(t)
	r := &keyring.RevocationREST{Commands: s.commands()}
	ctx := apiservertest.As(t.Context(), "jane", "")
	revoke := func(ctx context.Context, spec v1alpha1.KeyRevocationSpec, dryRun ...string) error {
		_, err := r.Create(ctx, name, &v1alpha1.KeyRevocation{Spec: spec}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	has := func(id identity.KeyID) bool {
		t.Helper()
		ring, _, err := s.store.Load(ctx)
		testkit.Must(t, err)
		for _, key := range ring.Keys {
			if key.ID == id {
				return true
			}
		}
		return false
	}
	spare := s.ring.Keys[3].ID
	for name, test := range map[string]struct {
		spec v1alpha1.KeyRevocationSpec
		want string
	}{
		"no key":       {v1alpha1.KeyRevocationSpec{Reason: "leaked"}, "spec.key: Required"},
		"no reason":    {v1alpha1.KeyRevocationSpec{Key: string(spare)}, "spec.reason: Required"},
		"no ID of one": {v1alpha1.KeyRevocationSpec{Key: "a", Reason: "leaked"}, "spec.key: Invalid"},
	} {
		if err := revoke(ctx, test.spec); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	unknown := v1alpha1.KeyRevocationSpec{Key: strings.Repeat("A", 43), Reason: "leaked"}
	if err := revoke(ctx, unknown); !apierrors.IsNotFound(err) {
		t.Errorf("a key that is not in the ring: %v", err)
	}
	leaked := v1alpha1.KeyRevocationSpec{Key: string(spare), Reason: "leaked"}
	if err := revoke(t.Context(), leaked); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a user: %v", err)
	}
	if err := revoke(ctx, leaked, metav1.DryRunAll); err != nil || !has(spare) {
		t.Errorf("dry run: %v, the key is there: %v", err, has(spare))
	}
	if err := revoke(ctx, leaked); err != nil || has(spare) {
		t.Errorf("%v, the key is there: %v", err, has(spare))
	}
	foreign := &v1alpha1.KeyRevocation{ObjectMeta: metav1.ObjectMeta{Name: "another"}, Spec: leaked}
	if _, err := r.Create(ctx, name, foreign, nil, nil); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("of another KeyRing: %v", err)
	}
	r.Operator.Store = nil
	if err := revoke(ctx, leaked); !apierrors.IsConflict(err) || len(causes(err)) != 1 || causes(err)[0] != "ExternalSigner" {
		t.Errorf("keys of an external signer: %v", err)
	}
}

func TestInitializationOfALostRingNeedsConsent(t *testing.T) {
	s := start(t)
	resumed := 0
	r := &keyring.InitializationREST{Commands: s.commands(), Resumed: func() { resumed++ }}
	remembering := func(store keystore.Store) keystore.Store {
		return &operation.Remembering{Store: store, Outside: func(context.Context) (keys.Past, error) { return keys.Past{}, nil }}
	}
	r.Operator.Store = remembering(s.store)
	ctx := apiservertest.As(t.Context(), "jane", "")
	initialize := func(name string, spec v1alpha1.KeyInitializationSpec) error {
		_, err := r.Create(ctx, name, &v1alpha1.KeyInitialization{Spec: spec}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	}
	accepted := v1alpha1.KeyInitializationSpec{AcceptLoss: true, Reason: "the disk is gone"}
	if err := initialize("another", accepted); !apierrors.IsNotFound(err) {
		t.Errorf("another KeyRing: %v", err)
	}
	if err := initialize(name, v1alpha1.KeyInitializationSpec{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.acceptLoss") || !strings.Contains(err.Error(), "spec.reason") {
		t.Errorf("without consent and reason: %v", err)
	}
	if err := initialize(name, accepted); !apierrors.IsConflict(err) || len(causes(err)) != 1 {
		t.Errorf("a ring that is not lost: %v", err)
	}
	empty := testkit.Need(keystore.OpenDirectory(filepath.Join(t.TempDir(), "keys")))(t)
	r.Operator.Store = remembering(empty)
	if err := initialize(name, accepted); err != nil || resumed != 1 {
		t.Errorf("%v, resumed %d times", err, resumed)
	}
	if ring, _, err := empty.Load(ctx); err != nil || len(ring.Keys) == 0 {
		t.Errorf("%d keys are stored, %v", len(ring.Keys), err)
	}
}
