package contextkind

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	authentication "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
)

// Each change of an object evaluates all references, each token request looks at all of them, and each related resource is listed once per
// process.
const (
	maxReferences = 20
	maxRelated    = 5
	// maxDeliveries bounds the Secrets that the writer of one object can cause in a cluster.
	maxDeliveries = 32
)

// claims matches names of claims: they need no brackets in CEL, and cannot be mistaken for another member of a token.
var claims = regexp.MustCompile(`^[a-z][a-zA-Z0-9]{0,62}$`)

// ClusterClaim is the claim of the caller's workload cluster. A ContextKind of objects without a namespace may have it: each object then
// stands for the cluster of its name.
const ClusterClaim = "seed"

// nameOfItself is the expression for the cluster of such an object.
const nameOfItself = "[object.metadata.name]"

// reserved are members of a token: those of gardener.cloud that have a meaning, and those beside it.
var reserved = []string{"workloadIdentity", "garden", ClusterClaim, "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "gardener.cloud", "kubernetes.io", "identity.credence.dev"}

// kinds are the names of kinds in Go and YAML.
var kinds = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]{0,62}$`)

// Name is the name that the ContextKind of a resource must have, so that there is at most one.
func Name(object v1alpha1.ContextResource) string {
	return schema.GroupResource{Group: object.Group, Resource: object.Resource}.String()
}

// Name is the name of the ContextKind.
func (k *Kind) Name() string { return k.Resource.GroupResource().String() }

// Compile checks a spec, and returns what it states.
func Compile(spec v1alpha1.ContextKindSpec) (*Kind, field.ErrorList) {
	path := field.NewPath("spec")
	version := schema.GroupVersion{Group: spec.Object.Group, Version: spec.Object.Version}
	kind := &Kind{
		Object: version.WithKind(spec.Object.Kind), Resource: version.WithResource(spec.Object.Resource),
		Namespaced: spec.Object.Scope != v1alpha1.ScopeCluster, Claim: spec.Claim,
	}
	errs := checkResource(spec.Object, path.Child("object"))
	taken := sets.New[string]()
	clusters := spec.Clusters
	if spec.Claim == ClusterClaim && !kind.Namespaced {
		taken.Insert(ClusterClaim)
		if clusters != "" {
			errs = append(errs, field.Forbidden(path.Child("clusters"), "an object that is claimed as "+ClusterClaim+" is on the WorkloadCluster of its name"))
		}
		clusters = nameOfItself
	} else {
		errs = append(errs, checkClaim(spec.Claim, taken, path.Child("claim"))...)
	}
	if clusters != "" {
		compiled, err := compile(clusters, objectScope, path.Child("clusters"), stringList, dynList)
		if err != nil {
			errs = append(errs, err)
		}
		kind.clusters = &compiled
	}
	lends := slices.ContainsFunc(spec.Related, func(r v1alpha1.RelatedObject) bool { return r.Lends })
	errs = append(errs, kind.compileReferences(spec.References, lends, path.Child("references"))...)
	errs = append(errs, kind.compileRelated(spec.Related, taken, path.Child("related"))...)
	errs = append(errs, kind.compileUsage(spec, path)...)
	return kind, errs
}

func (k *Kind) compileReferences(references []v1alpha1.ContextReference, lends bool, path *field.Path) field.ErrorList {
	switch n := len(references); {
	case n == 0 && !lends:
		return field.ErrorList{field.Required(path, "list at least one: where an object names the identities that it uses")}
	case n > maxReferences:
		return field.ErrorList{field.TooMany(path, n, maxReferences)}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i, each := range references {
		at := path.Index(i)
		for _, message := range utilvalidation.IsDNS1123Label(each.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), wording.Abbreviate(each.Name), message))
		}
		if names.Has(each.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), wording.Abbreviate(each.Name)))
		}
		names.Insert(each.Name)
		text, child, bound := each.WorkloadIdentities, "workloadIdentities", each.CredentialsBindings != ""
		if bound {
			if text != "" {
				errs = append(errs, field.Forbidden(at.Child(child), "a reference with credentialsBindings has no workloadIdentities: make it two references"))
			}
			text, child = each.CredentialsBindings, "credentialsBindings"
		}
		compiled, err := compile(text, objectScope, at.Child(child), stringList, dynList)
		if err != nil {
			errs = append(errs, err)
		}
		found, faults := k.compileDeliver(each.Deliver, at.Child("deliver"))
		errs = append(errs, faults...)
		k.references = append(k.references, reference{each.Name, compiled, bound, found})
	}
	return errs
}

// compileDeliver returns nil for a reference without delivery.
func (k *Kind) compileDeliver(spec *v1alpha1.ContextDeliver, path *field.Path) (*deliver, field.ErrorList) {
	if spec == nil {
		return nil, nil
	}
	var errs field.ErrorList
	if k.clusters == nil {
		errs = append(errs, field.Forbidden(path, "is delivered to the clusters of an object: set spec.clusters"))
	}
	k.Delivers = true
	compiled := &deliver{}
	for _, each := range []struct {
		to       *expression
		text     string
		scope    scope
		child    string
		accepted []*cel.Type
	}{
		{&compiled.namespace, spec.Namespace, objectScope, "namespace", []*cel.Type{cel.StringType}},
		{&compiled.secretName, spec.SecretName, referenceScope, "secretName", []*cel.Type{cel.StringType}},
		{&compiled.references, spec.References, objectScope, "references", []*cel.Type{stringList, dynList}},
	} {
		if each.text == "" && each.to == &compiled.references {
			continue
		}
		found, err := compile(each.text, each.scope, path.Child(each.child), each.accepted...)
		if err != nil {
			errs = append(errs, err)
		}
		*each.to = found
	}
	return compiled, errs
}

func (k *Kind) compileRelated(related []v1alpha1.RelatedObject, taken sets.Set[string], path *field.Path) field.ErrorList {
	if n := len(related); n > maxRelated {
		return field.ErrorList{field.TooMany(path, n, maxRelated)}
	}
	var errs field.ErrorList
	for i, each := range related {
		at := path.Index(i)
		errs = append(errs, checkClaim(each.Claim, taken, at.Child("claim"))...)
		errs = append(errs, checkResourceName(k.Resource.Group, each.Resource, at.Child("resource"))...)
		key, err := compile(each.Key, candidateScope, at.Child("key"), cel.StringType)
		if err != nil {
			errs = append(errs, err)
		}
		of, err := compile(each.Of, objectScope, at.Child("of"), cel.StringType)
		if err != nil {
			errs = append(errs, err)
		}
		k.Related = append(k.Related, Related{
			Claim: each.Claim, Resource: k.Resource.GroupVersion().WithResource(each.Resource), Key: CandidateKey{each.Key, key}, Lends: each.Lends, of: of,
		})
	}
	return errs
}

func checkClaim(claim string, taken sets.Set[string], path *field.Path) field.ErrorList {
	switch {
	case claim == "":
		return field.ErrorList{field.Required(path, "the member of a token that names the object")}
	case slices.Contains(reserved, claim):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the claim %s is reserved", claim))}
	case !claims.MatchString(claim):
		return field.ErrorList{field.Invalid(path, wording.Abbreviate(claim), "must be a letter in lower case, then letters and digits, at most 63")}
	case taken.Has(claim):
		return field.ErrorList{field.Duplicate(path, claim)}
	}
	taken.Insert(claim)
	return nil
}

func checkResource(object v1alpha1.ContextResource, path *field.Path) field.ErrorList {
	errs := checkResourceName(object.Group, object.Resource, path.Child("resource"))
	if object.Group != "" {
		for _, message := range utilvalidation.IsDNS1123Subdomain(object.Group) {
			errs = append(errs, field.Invalid(path.Child("group"), wording.Abbreviate(object.Group), message))
		}
	}
	for _, message := range utilvalidation.IsDNS1035Label(object.Version) {
		errs = append(errs, field.Invalid(path.Child("version"), wording.Abbreviate(object.Version), message))
	}
	if !kinds.MatchString(object.Kind) {
		errs = append(errs, field.Invalid(path.Child("kind"), wording.Abbreviate(object.Kind), "must be the kind of the objects, such as Shoot"))
	}
	if scopes := []string{v1alpha1.ScopeNamespaced, v1alpha1.ScopeCluster}; object.Scope != "" && !slices.Contains(scopes, object.Scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), wording.Abbreviate(object.Scope), scopes))
	}
	return errs
}

// checkResourceName refuses resources that this server serves, service accounts, which need no ContextKind, and Secrets.
func checkResourceName(group, resource string, path *field.Path) field.ErrorList {
	switch {
	case group == "" && resource == "secrets":
		return field.ErrorList{field.Forbidden(path, "Secrets are never read for tokens")}
	case group == "" && resource == "serviceaccounts":
		return field.ErrorList{field.Forbidden(path, "service accounts are contexts without a ContextKind")}
	case group == authentication.GroupName || group == v1alpha1.GroupName:
		return field.ErrorList{field.Forbidden(path, "objects that this API server serves cannot be contexts")}
	}
	var errs field.ErrorList
	for _, message := range utilvalidation.IsDNS1035Label(resource) {
		errs = append(errs, field.Invalid(path, wording.Abbreviate(resource), message))
	}
	return errs
}
