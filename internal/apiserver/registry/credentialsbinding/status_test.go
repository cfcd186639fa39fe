package credentialsbinding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// Whether an object exists is shown to writers who have the right to it, and to no others: the answers are the same for an object and for
// none.
func TestMissingObjectsAreAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		rights  []string
		code    int32
		warning string
	}{
		"with the right":    {[]string{"use shop/later"}, 0, "workloadIdentityRef: WorkloadIdentity shop/later does not exist yet"},
		"without the right": {nil, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var refusals []string
			for _, identities := range []map[string]*v1alpha1.WorkloadIdentity{nil, {"shop/later": identity("aws", "")}} {
				w, told := world{identities: identities, rights: c.rights}, warnings{}
				ctx := warning.WithWarningRecorder(request.WithUser(request.WithNamespace(t.Context(), "shop"), &user.DefaultInfo{Name: "jane"}), &told)
				err := references{w, w}.check(ctx, binding(nil, ref("later")), nil, true)
				var status apierrors.APIStatus
				if (err == nil) != (c.code == 0) || errors.As(err, &status) && status.Status().Code != c.code {
					t.Errorf("%v, want %d", err, c.code)
				}
				if err != nil {
					refusals = append(refusals, err.Error())
				}
				if missing := identities == nil && c.warning != ""; missing != (len(told) == 1) || missing && !strings.HasPrefix(told[0], c.warning) {
					t.Errorf("warnings %q, want %q", told, c.warning)
				}
			}
			if len(slices.Compact(refusals)) > 1 {
				t.Errorf("the answers differ: %q", refusals)
			}
		})
	}
}

func TestMissingQuotaIsAWarning(t *testing.T) {
	w, told := world{rights: []string{"get shop/later"}}, warnings{}
	made := binding(ref("a"), nil)
	made.Quotas = []v1alpha1.CredentialsReference{{Namespace: "shop", Name: "later"}}
	ctx := warning.WithWarningRecorder(request.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"}), &told)
	l := limits{quotas{}, namespaces{label: v1alpha1.NamespaceEnabled}, w}
	if err := l.check(ctx, made); err != nil || len(told) != 1 || !strings.Contains(told[0], "quotas[0]: Quota shop/later does not exist yet") {
		t.Errorf("%v, warnings %q", err, told)
	}
	if missing, err := l.missing(ctx, made); err != nil || missing == "" {
		t.Errorf("%q, %v", missing, err)
	}
	l.quotas = quotas{"shop/later": v1alpha1.QuotaScope{}}
	if missing, err := l.missing(ctx, made); err != nil || missing != "" {
		t.Errorf("%q, %v", missing, err)
	}
}

// groups reviews the groups of a user, too.
type groups struct{ world }

func (g groups) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() != "jane" || !slices.Equal(a.GetUser().GetGroups(), []string{"shop-admins"}) {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return g.world.Authorize(ctx, a)
}

// An identity that appears is one that the writer of the reference may use, for the provider and of the account.
func TestExamine(t *testing.T) {
	made := func(uid types.UID, kind, role string) *v1alpha1.WorkloadIdentity {
		wi := identity(kind, role)
		wi.UID = uid
		return wi
	}
	deleted := made("u1", "aws", "")
	deleted.DeletionTimestamp = &metav1.Time{}
	jane := &v1alpha1.CredentialsWriter{Username: "jane", Groups: []string{"shop-admins"}}
	one, other := "112233445566:role/one", "998877665544:role/one"
	ofOne := []v1alpha1.CredentialsAccountField{{Path: "spec.targetSystem.providerConfig.iamRoleARN", Value: "arn:aws:iam::112233445566"}}
	for name, c := range map[string]struct {
		found   *v1alpha1.WorkloadIdentity
		before  v1alpha1.CredentialsBindingStatus
		rights  []string
		outage  error
		uid     types.UID
		reason  string
		message string
	}{
		"none":                              {nil, v1alpha1.CredentialsBindingStatus{Writer: jane}, nil, nil, "", "NotFound", "WorkloadIdentity shop/later does not exist"},
		"one that was given is gone":        {nil, v1alpha1.CredentialsBindingStatus{Writer: jane, CredentialsUID: "u1"}, nil, nil, "", "NotFound", ""},
		"one appears":                       {made("u1", "aws", one), v1alpha1.CredentialsBindingStatus{Writer: jane}, []string{"use shop/later"}, nil, "u1", reasonFound, ""},
		"without the right":                 {made("u1", "aws", one), v1alpha1.CredentialsBindingStatus{Writer: jane}, nil, nil, "", "WriterNotAllowed", `user "jane", who wrote that, may not use it now`},
		"the right of another user":         {made("u1", "aws", one), v1alpha1.CredentialsBindingStatus{Writer: &v1alpha1.CredentialsWriter{Username: "bob", Groups: jane.Groups}}, []string{"use shop/later"}, nil, "", "WriterNotAllowed", ""},
		"it was given, and the right ended": {made("u1", "aws", one), v1alpha1.CredentialsBindingStatus{Writer: jane, CredentialsUID: "u1"}, nil, nil, "u1", reasonFound, ""},
		"another uid, and the right ended":  {made("u2", "aws", one), v1alpha1.CredentialsBindingStatus{Writer: jane, CredentialsUID: "u1"}, nil, nil, "", "WriterNotAllowed", ""},
		"another uid, with the right":       {made("u2", "aws", one), v1alpha1.CredentialsBindingStatus{Writer: jane, CredentialsUID: "u1", Account: ofOne}, []string{"use shop/later"}, nil, "u2", reasonFound, ""},
		"another provider":                  {made("u1", "gcp", ""), v1alpha1.CredentialsBindingStatus{Writer: jane}, []string{"use shop/later"}, nil, "", "OtherProvider", "is for gcp, and the binding for aws"},
		"another account":                   {made("u2", "aws", other), v1alpha1.CredentialsBindingStatus{Writer: jane, Account: ofOne}, []string{"use shop/later"}, nil, "", "OtherAccount", `is "arn:aws:iam::998877665544", and was "arn:aws:iam::112233445566"`},
		"an account that is not set":        {made("u2", "aws", ""), v1alpha1.CredentialsBindingStatus{Writer: jane, Account: ofOne}, []string{"use shop/later"}, nil, "", "OtherAccount", `is ""`},
		"one that is being deleted":         {deleted, v1alpha1.CredentialsBindingStatus{Writer: jane}, []string{"use shop/later"}, nil, "", "OtherProvider", "is being deleted"},
		"one held that is being deleted":    {deleted, v1alpha1.CredentialsBindingStatus{Writer: jane, CredentialsUID: "u1"}, nil, nil, "u1", reasonFound, ""},
		"a binding from before":             {made("u1", "aws", one), v1alpha1.CredentialsBindingStatus{}, nil, nil, "u1", reasonFound, ""},
		"an outage":                         {made("u1", "aws", one), v1alpha1.CredentialsBindingStatus{Writer: jane}, nil, errors.New("away"), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := groups{world{identities: map[string]*v1alpha1.WorkloadIdentity{}, rights: c.rights, outage: c.outage}}
			if c.found != nil {
				w.identities["shop/later"] = c.found
			}
			b := binding(nil, ref("later"))
			b.Generation, b.Status = 3, c.before
			status, found, err := references{w, w}.examine(t.Context(), b, "")
			if c.outage != nil {
				if !apierrors.IsServiceUnavailable(err) {
					t.Errorf("%v, want 503", err)
				}
				return
			}
			if err != nil || status.CredentialsUID != c.uid || found.reason != c.reason || !strings.Contains(found.message, c.message) || status.ObservedGeneration != 3 {
				t.Errorf("%+v, %+v, %v", status, found, err)
			}
			b.Status = status
			if Gives(b) != (c.uid != "") {
				t.Errorf("gives %v", Gives(b))
			}
			if c.uid != "" && c.found.Spec.TargetSystem.ProviderConfig != nil && (len(status.Account) == 0 || status.Account[0] != ofOne[0]) {
				t.Errorf("account %v", status.Account)
			}
		})
	}
}

// The status belongs to the server: it begins anew with each reference, and keeps the account while identities follow each other.
func TestStatusOfWrites(t *testing.T) {
	forged := v1alpha1.CredentialsBindingStatus{CredentialsUID: "u9", Writer: &v1alpha1.CredentialsWriter{Username: "root"}}
	as := func(name string) context.Context {
		return request.WithUser(t.Context(), &user.DefaultInfo{Name: name, UID: "uid", Groups: []string{"g"}})
	}
	made := binding(nil, ref("one"))
	made.Status = forged
	strategy{}.PrepareForCreate(as("jane"), made)
	if made.Status.CredentialsUID != "" || made.Status.Writer.Username != "jane" || made.Status.Writer.UID != "uid" || !slices.Equal(made.Status.Writer.Groups, []string{"g"}) {
		t.Errorf("created with %+v", made.Status)
	}
	made.Status.CredentialsUID, made.Status.Account = "u1", []v1alpha1.CredentialsAccountField{{Path: "p", Value: "v"}}
	for name, c := range map[string]struct {
		after           *v1alpha1.CredentialsBinding
		writer          string
		uid             types.UID
		keepsTheAccount bool
	}{
		"the same reference": {binding(nil, ref("one")), "jane", "u1", true},
		"another identity":   {binding(nil, ref("two")), "bob", "", true},
		"a Secret":           {binding(ref("static"), nil), "bob", "", false},
	} {
		c.after.Status = forged
		strategy{}.PrepareForUpdate(as("bob"), c.after, made)
		if got := c.after.Status; got.Writer.Username != c.writer || got.CredentialsUID != c.uid || (len(got.Account) == 1) != c.keepsTheAccount {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// After another identity has come between, the account of the binding still rules.
func TestAccountOfABindingStays(t *testing.T) {
	w := world{identities: map[string]*v1alpha1.WorkloadIdentity{"shop/other": identity("aws", "998877665544:role/one")}, rights: []string{"use shop/gone", "use shop/other"}}
	old := binding(nil, ref("gone"))
	old.Status.Account = []v1alpha1.CredentialsAccountField{{Path: "spec.targetSystem.providerConfig.iamRoleARN", Value: "arn:aws:iam::112233445566"}}
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"})
	if err := (references{w, w}).check(ctx, binding(nil, ref("other")), old, false); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "is of another account than shop/gone") {
		t.Errorf("%v, want 422", err)
	}
}

// A binding that does not give an identity does not hold it.
func TestRefusedBindingsHoldNothing(t *testing.T) {
	refused := binding(nil, ref("later"))
	refused.Status.ObservedGeneration = 1
	var held []string
	w := holding{world{identities: map[string]*v1alpha1.WorkloadIdentity{"shop/later": identity("aws", "")}}, &held}
	if err := (references{w, w}).rehold(t.Context(), []v1alpha1.CredentialsBinding{*refused}); err != nil || len(held) > 0 {
		t.Errorf("held %q, %v", held, err)
	}
	deleted := v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "later", DeletionTimestamp: &metav1.Time{}}}
	got := referred{}
	if err := release(t.Context(), got, []v1alpha1.WorkloadIdentity{deleted}, []v1alpha1.CredentialsBinding{*refused}, metav1.Now().Time); err != nil || len(got["later"]) > 0 {
		t.Errorf("referred %v, %v", got, err)
	}
}

// A server-side apply of the other reference takes the place of one that another manager owns. All other writes keep both, and are refused.
func TestReferenceReplacedByApply(t *testing.T) {
	entry := func(operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: string(operation), Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	older := entry(metav1.ManagedFieldsOperationUpdate, `{"f:provider":{},"f:secretRef":{}}`)
	for name, test := range map[string]struct {
		before  *v1alpha1.CredentialsBinding
		entries []metav1.ManagedFieldsEntry
		secret  bool
	}{
		"applied":                     {binding(ref("static"), nil), []metav1.ManagedFieldsEntry{older, entry(metav1.ManagedFieldsOperationApply, `{"f:workloadIdentityRef":{}}`)}, false},
		"applied with both":           {binding(ref("static"), nil), []metav1.ManagedFieldsEntry{older, entry(metav1.ManagedFieldsOperationApply, `{"f:secretRef":{},"f:workloadIdentityRef":{}}`)}, true},
		"updated":                     {binding(ref("static"), nil), []metav1.ManagedFieldsEntry{older, entry(metav1.ManagedFieldsOperationUpdate, `{"f:workloadIdentityRef":{}}`)}, true},
		"without owners":              {binding(ref("static"), nil), nil, true},
		"a new binding":               {binding(nil, nil), []metav1.ManagedFieldsEntry{older, entry(metav1.ManagedFieldsOperationApply, `{"f:workloadIdentityRef":{}}`)}, true},
		"entries that are not fields": {binding(ref("static"), nil), []metav1.ManagedFieldsEntry{entry(metav1.ManagedFieldsOperationApply, `[]`), {}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := binding(ref("static"), ref("cart"))
			after.ManagedFields = test.entries
			strategy{}.PrepareForUpdate(t.Context(), after, test.before)
			if kept := after.SecretRef != nil; kept != test.secret || after.WorkloadIdentityRef == nil {
				t.Errorf("the Secret is kept: %v, want %v", kept, test.secret)
			}
			if owned := strings.Contains(fmt.Sprint(after.ManagedFields), "f:secretRef"); !test.secret && owned {
				t.Errorf("the reference has an owner still: %v", after.ManagedFields)
			}
		})
	}
}
