package clitest

import (
	"cmp"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/report"
)

// ringFake serves the KeyRing as the API does, from a real ring. A key controller that is never late is part of it.
type ringFake struct {
	directory string // of the ring

	mu       sync.Mutex
	spec     v1alpha1.KeyRingSpec
	version  int
	overtake int // how many updates are overtaken by another one
	// exposed makes the documents keep what was revoked, and unread keeps them from being read.
	exposed, unread bool
	// issuer is that of the KeyRing; empty: one that does not answer.
	issuer identity.Issuer
}

// makeRing AGE [DIR] makes a ring of that age, behind the API or in a folder, and names its keys in variables. Further
// words: "ring none" takes the ring away, "ring overtaken" lets another update come before the next one, "ring
// dashed AGE" makes ES256 keys whose IDs begin with -, "ring plain AGE" makes none of these, "ring exposed" and "ring unread" keep what is revoked published, or
// the documents from being read, and "ring shown" has the issuer $STATIC go on showing the keys of now, until the next ring.
func makeRing(ts *testscript.TestScript, neg bool, args []string) {
	generate := keys.NewPrivate
	if len(args) > 1 && (args[0] == "dashed" || args[0] == "plain") {
		generate, args = named(args[0] == "dashed"), args[1:]
	}
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: ring [dashed|plain] AGE [DIR]")
	}
	fake := stateOf(ts).ring
	fake.mu.Lock()
	defer fake.mu.Unlock()
	if args[0] == "overtaken" {
		fake.overtake = 1
		return
	}
	fake.exposed, fake.unread, fake.issuer = args[0] == "exposed", args[0] == "unread", ""
	if fake.exposed || fake.unread {
		return
	}
	if args[0] == "shown" {
		fake.show(ts)
		return
	}
	directory := fake.directory
	if len(args) == 2 {
		directory = ts.MkAbs(args[1])
	}
	ts.Check(os.RemoveAll(directory))
	if args[0] == "none" {
		return
	}
	age, err := time.ParseDuration(args[0])
	ts.Check(err)
	store, err := keystore.OpenDirectory(directory)
	ts.Check(err)
	ring, _, err := keystore.LoadOrBootstrap(context.Background(), store, generate, Now().Add(-age))
	ts.Check(err)
	for _, key := range ring.Keys {
		ts.Setenv(fmt.Sprintf("%s_%s", key.Algorithm, strings.ToUpper(string(key.State))), string(key.ID))
	}
}

// show makes $STATIC the issuer, and the keys of now what it shows.
func (f *ringFake) show(ts *testscript.TestScript) {
	f.issuer = identity.Issuer(ts.Getenv("STATIC"))
	store, err := keystore.OpenDirectory(f.directory)
	ts.Check(err)
	ring, _, err := store.Load(context.Background())
	ts.Check(err)
	documents, err := discovery.New(f.issuer, ring.Published())
	ts.Check(err)
	ts.Check(os.MkdirAll(ts.MkAbs("site/.well-known"), 0o700))
	ts.Check(os.WriteFile(ts.MkAbs("site/.well-known/openid-configuration"), documents.Configuration(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("site/jwks"), documents.JWKS(), 0o600))
}

// named makes keys until the ID of one begins with -, or until it does not. RSA keys are slow to make, and never dashed.
func named(dashed bool) keys.Generate {
	return func(algorithm identity.Algorithm) (crypto.Signer, error) {
		for {
			private, err := keys.NewPrivate(algorithm)
			if err != nil {
				return nil, err
			}
			wanted := dashed && algorithm == identity.ES256
			if id, err := identity.KeyIDOf(private.Public()); err != nil || strings.HasPrefix(string(id), "-") == wanted {
				return private, err
			}
		}
	}
}

// The paths are those below /apis/identity.credence.dev/v1alpha1/keyrings.
func (f *ringFake) serve(w http.ResponseWriter, r *http.Request, path []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resource := strings.Join(append([]string{"keyrings"}, path[1:]...), "/")
	verb := map[string]string{http.MethodGet: "get", http.MethodPut: "update", http.MethodPost: "create"}[r.Method]
	if forbidden(w, r, v1alpha1.GroupName, verb, resource) {
		return
	}
	object, operator, err := f.keep(r.Context())
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		Answer(w, http.StatusOK, v1alpha1.KeyRing{TypeMeta: ringType(), ObjectMeta: metav1.ObjectMeta{Name: path[0]}})
	case err != nil:
		Refuse(w, metav1.Status{Code: 500, Reason: "InternalError", Message: err.Error()})
	case resource == "keyrings" && r.Method == http.MethodGet:
		Answer(w, http.StatusOK, object)
	case resource == "keyrings" && r.Method == http.MethodPut:
		f.update(w, r, object)
	case resource == "keyrings/rotation" && r.Method == http.MethodPost:
		rotateKeys(w, r, operator)
	case resource == "keyrings/revocation" && r.Method == http.MethodPost:
		revokeKey(w, r, operator)
	default:
		http.NotFound(w, r)
	}
}

// keep does what is due, as the key controller would, and returns the object of the ring.
func (f *ringFake) keep(ctx context.Context) (v1alpha1.KeyRing, keyring.Operator, error) {
	object := v1alpha1.KeyRing{TypeMeta: ringType(), Spec: f.spec}
	object.Name, object.ResourceVersion = v1alpha1.WorkloadIdentities, strconv.Itoa(f.version)
	if _, err := os.Stat(f.directory); err != nil {
		return object, keyring.Operator{}, keystore.ErrNotFound
	}
	store, err := keystore.OpenDirectory(f.directory)
	if err != nil {
		return object, keyring.Operator{}, err
	}
	settings, err := keys.Settings{}.Complete()
	if err != nil {
		return object, keyring.Operator{}, err
	}
	ring, version, err := store.Load(ctx)
	if err != nil {
		return object, keyring.Operator{}, err
	}
	view := keys.View{Settings: settings, Now: Now(), Gates: report.Gates(f.spec.RelyingParties), Documents: &keys.Gate{Name: "the documents"}}
	for _, key := range ring.Keys {
		view.Documents.Knows = append(view.Documents.Knows, key.ID)
	}
	for _, gone := range ring.Compromised {
		if f.exposed {
			view.Documents.Knows = append(view.Documents.Knows, gone.ID)
		}
	}
	view.Documents.Unread = f.unread
	change, err := ring.Step(view, keys.NewPrivate)
	if err == nil && change.Changed {
		err = store.Save(ctx, change.Ring, version)
	}
	if err != nil {
		return object, keyring.Operator{}, err
	}
	object.Status = report.Status(report.Observation{
		Issuer: cmp.Or(f.issuer, "https://127.0.0.1:1"), Ring: change.Ring, View: view, Plan: change.Ring.Plan(view), RelyingParties: f.spec.RelyingParties,
		Documents: f.documents(view),
	})
	return object, keyring.Operator{
		Store: store, Clock: clocktesting.NewFakePassiveClock(Now()), Generate: keys.NewPrivate,
		View: func(context.Context) (keys.View, error) { return view, nil },
	}, nil
}

func (f *ringFake) documents(view keys.View) *v1alpha1.PublishedDocuments {
	documents := &v1alpha1.PublishedDocuments{From: view.Documents.Name}
	for _, id := range view.Documents.Knows {
		documents.Keys = append(documents.Keys, string(id))
	}
	if f.unread {
		documents.Keys, documents.Message = nil, "read the documents: connection refused"
	}
	return documents
}

func (f *ringFake) update(w http.ResponseWriter, r *http.Request, stored v1alpha1.KeyRing) {
	var object v1alpha1.KeyRing
	decode(r, &object)
	if f.overtake > 0 {
		f.overtake--
		f.version++
		f.spec.RelyingParties = append(f.spec.RelyingParties, v1alpha1.RelyingParty{Name: "faster"})
	}
	if object.ResourceVersion != strconv.Itoa(f.version) {
		Refuse(w, metav1.Status{Code: 409, Reason: "Conflict", Message: "the object has been modified"})
		return
	}
	for i, party := range object.Spec.RelyingParties {
		if problems := validation.IsDNS1123Label(party.Name); len(problems) > 0 {
			Refuse(w, metav1.Status{Code: 422, Reason: "Invalid", Message: "m", Details: &metav1.StatusDetails{Kind: "KeyRing", Name: object.Name, Causes: []metav1.StatusCause{
				{Field: fmt.Sprintf("spec.relyingParties[%d].name", i), Message: "Invalid value: " + problems[0]},
			}}})
			return
		}
	}
	f.spec = object.Spec
	f.version++
	stored.Spec, stored.ResourceVersion = f.spec, strconv.Itoa(f.version)
	Answer(w, http.StatusOK, stored)
}

func rotateKeys(w http.ResponseWriter, r *http.Request, operator keyring.Operator) {
	var rotation v1alpha1.KeyRotation
	decode(r, &rotation)
	command := keys.Command{
		Algorithm: identity.Algorithm(rotation.Spec.Algorithm), Key: identity.KeyID(rotation.Spec.ActiveKey),
		AcceptRefusals: rotation.Spec.AcceptRefusals, Cause: keys.Cause{By: "jane", Reason: rotation.Spec.Reason},
	}
	do := keyring.Rotate(command)
	if rotation.Spec.Now {
		do = operator.RotateNow(command)
	}
	outcome, err := operator.Do(r.Context(), do, dryRun(r))
	if err != nil {
		refuseCommand(w, err)
		return
	}
	rotation.Status = report.Rotation(outcome.Before, outcome.Ring, outcome.View, command.Algorithm, rotation.Spec.Now)
	Answer(w, http.StatusCreated, rotation)
}

func revokeKey(w http.ResponseWriter, r *http.Request, operator keyring.Operator) {
	var revocation v1alpha1.KeyRevocation
	decode(r, &revocation)
	outcome, err := operator.Do(r.Context(), operator.Revoke(keys.Command{
		Key: identity.KeyID(revocation.Spec.Key), AcceptRefusals: revocation.Spec.AcceptRefusals, Cause: keys.Cause{By: "jane", Reason: revocation.Spec.Reason},
	}), dryRun(r))
	if err != nil {
		refuseCommand(w, err)
		return
	}
	revocation.Status = report.Revocation(outcome.Before, outcome.Ring, outcome.View, identity.KeyID(revocation.Spec.Key))
	Answer(w, http.StatusCreated, revocation)
}

// refuseCommand answers as internal/apiserver/registry/keyring does.
func refuseCommand(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[*keys.Refused](err)
	if !ok {
		Refuse(w, metav1.Status{Code: 500, Reason: "InternalError", Message: err.Error()})
		return
	}
	status := metav1.Status{Code: 409, Reason: "Conflict", Message: refused.Message, Details: &metav1.StatusDetails{
		Group: v1alpha1.GroupName, Kind: "keyrings", Name: v1alpha1.WorkloadIdentities,
		Causes: []metav1.StatusCause{{Type: metav1.CauseType(refused.Reason), Message: refused.Message}},
	}}
	switch refused.Reason {
	case keys.BadCommand:
		status.Code, status.Reason = 422, "Invalid"
	case keys.NoSuchKey:
		status.Code, status.Reason = 404, "NotFound"
	}
	Refuse(w, status)
}

func dryRun(r *http.Request) bool { return slices.Equal(r.URL.Query()["dryRun"], []string{"All"}) }

func decode(r *http.Request, into any) {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		panic(err)
	}
}

func ringType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "KeyRing"}
}
