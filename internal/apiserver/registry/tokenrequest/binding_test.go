package tokenrequest

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// deleted is identities that are being deleted, with finalizers.
type deleted struct {
	identities
	finalizers []string
}

func (d deleted) Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error) {
	wi, err := d.identities.Identity(ctx, name)
	if err == nil {
		wi.DeletionTimestamp, wi.Finalizers = &metav1.Time{Time: time.Unix(0, 0)}, d.finalizers
	}
	return wi, err
}

// listing has each user in a cluster that lists namespaces.
type listing []string

func (l listing) Of(string) (*identityv1alpha1.WorkloadCluster, error) {
	return &identityv1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "uid-of-east"}, Spec: identityv1alpha1.WorkloadClusterSpec{Identities: identityv1alpha1.WorkloadClusterIdentities{Namespaces: l}}}, nil
}

// An identity that is being deleted gives tokens to those alone who name a binding that keeps it, and no identity gives one by a binding
// that does not refer to it.
func TestTokensByBinding(t *testing.T) {
	held := deleted{finalizers: []string{"foregroundDeletion", v1alpha1.FinalizerBindings}}
	for name, test := range map[string]struct {
		identities Identities
		binding    string
		lists      []string
		want       metav1.StatusReason
	}{
		"a binding":                         {identities: identities{}, binding: "elsewhere/bound"},
		"a binding of another identity":     {identities: identities{}, binding: "ns/bound", want: metav1.StatusReasonConflict},
		"a binding without a namespace":     {identities: identities{}, binding: "bound", want: metav1.StatusReasonInvalid},
		"an empty binding":                  {identities: identities{}, binding: "/", want: metav1.StatusReasonInvalid},
		"a binding that cannot be read":     {identities: identities{}, binding: "ns/unreadable", want: metav1.StatusReasonTooManyRequests},
		"deleted, by a binding":             {identities: held, binding: "elsewhere/bound"},
		"deleted, without a binding":        {identities: held, want: metav1.StatusReasonConflict},
		"deleted, by a binding of another":  {identities: held, binding: "ns/bound", want: metav1.StatusReasonConflict},
		"released, by a binding":            {identities: deleted{finalizers: []string{"foregroundDeletion"}}, binding: "elsewhere/bound", want: metav1.StatusReasonConflict},
		"deleted and never bound":           {identities: deleted{}, want: metav1.StatusReasonConflict},
		"deleted, binding that is not read": {identities: held, binding: "ns/unreadable", want: metav1.StatusReasonTooManyRequests},
		"no right to use the binding":       {identities: held, binding: "elsewhere/forbidden", want: metav1.StatusReasonForbidden},
		"nor does it show what exists":      {identities: identities{}, binding: "nowhere/forbidden", want: metav1.StatusReasonForbidden},
		"a review fails":                    {identities: held, binding: "elsewhere/unreviewed", want: metav1.StatusReasonServiceUnavailable},
		"by a cluster that lists it":        {identities: held, binding: "elsewhere/bound", lists: []string{"ns", "elsewhere"}},
		"by a cluster that does not":        {identities: held, binding: "elsewhere/bound", lists: []string{"ns"}, want: metav1.StatusReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			rest, _ := newREST(t, func(a authorizer.Attributes) (bool, error) {
				if a.GetName() == "unreviewed" {
					return false, errors.New("away")
				}
				return a.GetVerb() == "use" && a.GetResource() == "credentialsbindings" && a.GetName() != "forbidden", nil
			}, testRing)
			rest.Identities = test.identities
			if test.lists != nil {
				rest.Clusters = listing(test.lists)
			}
			request := &Object{}
			if test.binding != "" {
				request.Metadata.Annotations = map[string]string{v1alpha1.AnnotationBinding: test.binding}
			}
			out, err := rest.Create(callerContext(t), "one", request, nil, &metav1.CreateOptions{})
			if got := apierrors.ReasonForError(err); got != test.want || (err == nil) != (out != nil && out.(*Object).Status.Token != "") {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
