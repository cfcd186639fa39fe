package authority

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	windowsv1 "github.com/credence-id/credence/api/windows/v1"
)

// Kind is a kind of object as rights name it: in all of its versions.
type Kind struct{ Group, Resource, Subresource string }

// The kinds of objects whose use is reviewed. Another one is one more value, and its cases in authoritytest.
var (
	WorkloadIdentities     = Kind{Group: v1alpha1.GroupName, Resource: "workloadidentities"}
	WorkloadIdentityTokens = Kind{Group: v1alpha1.GroupName, Resource: "workloadidentities", Subresource: "token"}
	CredentialsBindings    = Kind{Group: v1alpha1.GroupName, Resource: "credentialsbindings"}
	GMSACredentialSpecs    = Kind{Group: windowsv1.GroupName, Resource: windowsv1.ResourceName}
	ServiceAccounts        = Kind{Resource: "serviceaccounts"}
)

// Object is an object, or without a name all of its kind in the namespace. The namespace of a cluster-scoped object is that of the pod
// which refers to it, so that a RoleBinding there may give the right.
type Object struct {
	Kind
	Namespace, Name string
}

// Question is whether a subject has a right.
type Question struct {
	Subject Subject
	Verb    string
	Object  Object
}

// Use is the question whether a subject may use an object.
func Use(subject Subject, kind Kind, namespace, name string) Question {
	return Question{subject, "use", Object{kind, namespace, name}}
}

// Spec is the question as an authorizer reads it.
func (q Question) Spec() authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: q.Subject.Name, UID: q.Subject.UID, Groups: q.Subject.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: q.Verb, Group: q.Object.Group, Resource: q.Object.Resource, Subresource: q.Object.Subresource, Namespace: q.Object.Namespace, Name: q.Object.Name,
		},
	}
	if len(q.Subject.Extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(q.Subject.Extra))
		for key, values := range q.Subject.Extra {
			spec.Extra[key] = values
		}
	}
	return spec
}

func (q Question) String() string {
	return fmt.Sprintf("%s may %s %s %s in namespace %s", q.Subject.Name, q.Verb, q.Object.Resource, q.Object.Name, q.Object.Namespace)
}

// key is a text that no other question has.
func (q Question) key() string {
	key := AppendTexts(make([]byte, 0, 512), q.Verb, q.Object.Group, q.Object.Resource, q.Object.Subresource, q.Object.Namespace, q.Object.Name)
	return string(q.Subject.AppendKey(key))
}
