package inventory

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// Delivery is what is shown of a Secret that carries a token of an identity. The token itself is not kept.
type Delivery struct {
	Namespace string `json:"namespace"`
	Secret    string `json:"secret"`
	// Missing is true if a service account needs the Secret, and it does not exist.
	Missing bool `json:"missing,omitempty"`
	// ServiceAccount is the account whose pods the Secret is for; empty if it is for other use.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// RequestedBy is the user on whose behalf a Secret for other use is filled; empty in Secrets that were labelled before that was kept.
	RequestedBy string `json:"requestedBy,omitempty"`
	// Pods is how many pods that have not ended mount the Secret, absent without the right to list pods; PodNames the first of them.
	Pods     *int     `json:"pods,omitempty"`
	PodNames []string `json:"podNames,omitempty"`
	// Expires is the token's exp claim, Renews when the agent means to renew it.
	Expires *time.Time `json:"expires,omitempty"`
	Renews  *time.Time `json:"renews,omitempty"`
	// KeyID is the kid of the key that has signed the token; empty without a token.
	KeyID string `json:"kid,omitempty"`
	// Context is what the token names besides the identity.
	Context string `json:"context"`
	// OrphanedSince is since when the identity does not exist any more.
	OrphanedSince *time.Time `json:"orphanedSince,omitempty"`
	// ReleasedSince is since when the service account does not name the identity any more, while the Secret is still there.
	ReleasedSince *time.Time `json:"releasedSince,omitempty"`
	// Problem is what is wrong with the Secret itself.
	Problem     string   `json:"problem,omitempty"`
	LastFailure *Warning `json:"lastFailure,omitempty"`

	// Issuer is the token's iss claim, Issued its iat claim.
	Issuer string    `json:"-"`
	Issued time.Time `json:"-"`
	// Passwords are those of the registries that the Secret lists; nil: it lists none.
	Passwords *Passwords `json:"-"`
}

// Failure is the newest Warning on the Secret, the service account that needs it, or the identity, that is about this delivery and
// has not been followed by a token.
func (d *Delivery) Failure(identity *Identity) *Warning {
	newest := d.LastFailure
	if on := identity.LastFailure; on != nil && on.about(d) && (newest == nil || on.Time.After(newest.Time)) {
		newest = on
	}
	if newest != nil && newest.Time.Before(d.Issued) {
		return nil
	}
	return newest
}

// maxPodNames bounds what is kept of the pods of a Secret.
const maxPodNames = 20

// DeliveryOf reads a Secret. identity is the one that it is meant to carry tokens of, by its annotations; if these name a CredentialsBinding,
// the one of its token.
func DeliveryOf(secret *corev1.Secret) (identity types.NamespacedName, d *Delivery) {
	d = &Delivery{Namespace: secret.Namespace, Secret: secret.Name, Context: "-"}
	request, err := tokensecret.Parse(secret)
	identity = types.NamespacedName{Namespace: secret.Annotations[v1alpha1.AnnotationNamespace], Name: secret.Annotations[v1alpha1.AnnotationName]}
	if err != nil {
		d.Problem = wording.Redact(err.Error())
	}
	for _, owner := range secret.OwnerReferences {
		if owner.APIVersion == "v1" && owner.Kind == "ServiceAccount" {
			d.ServiceAccount = owner.Name
		}
	}
	if user, known := tokensecret.RequestedBy(secret); known {
		d.RequestedBy = user.Name
	}
	d.Renews = timestamp(secret.Annotations[v1alpha1.AnnotationRenewTimestamp])
	d.OrphanedSince = timestamp(secret.Annotations[v1alpha1.AnnotationOrphaned])
	d.ReleasedSince = timestamp(secret.Annotations[v1alpha1.AnnotationReleased])
	d.Passwords = passwordsOf(secret)
	token := secret.Data[v1alpha1.SecretToken]
	if len(token) == 0 {
		return identity, d
	}
	inspection, err := relyingparty.Inspect(string(token))
	if err != nil {
		d.Problem = "its token can't be read: " + err.Error()
		return identity, d
	}
	if parts := strings.Split(inspection.Subject, ":"); request.Binding.Name != "" && len(parts) == 5 {
		identity = types.NamespacedName{Namespace: parts[2], Name: parts[3]} // the binding's, when the token was issued
	}
	d.Issuer, d.Issued, d.KeyID = inspection.Issuer, inspection.IssuedAt, inspection.KeyID
	if !inspection.Expiry.IsZero() {
		d.Expires = &inspection.Expiry
	}
	d.Context = tokenContext(inspection.Claims, request.Context)
	return identity, d
}

// Passwords is what is shown of the passwords of registries that credence-registry keeps in a Secret.
type Passwords struct {
	Made    bool       // there are some
	Current bool       // they were made from what the Secret holds now
	Renews  *time.Time // when credence-registry means to renew them
}

func passwordsOf(secret *corev1.Secret) *Passwords {
	if _, listed := secret.Annotations[v1alpha1.AnnotationRegistries]; !listed || secret.Type != corev1.SecretTypeDockerConfigJson {
		return nil
	}
	inputs := secret.Annotations[v1alpha1.AnnotationRegistriesInputs]
	return &Passwords{
		Made:    inputs != "",
		Current: inputs == renewal.Seal(renewal.PasswordInputs(secret), secret.Data[corev1.DockerConfigJsonKey]),
		Renews:  timestamp(secret.Annotations[v1alpha1.AnnotationRegistriesRenewTimestamp]),
	}
}

// timestamp reads an annotation that the agent writes; nil if it does not parse, which the agent takes for due.
func timestamp(text string) *time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &at
}

// tokenContext words the context that a token's claims name, beside the one that its Secret requests.
func tokenContext(claims json.RawMessage, asked *v1alpha1.ContextObject) string {
	var named struct {
		Kubernetes struct {
			Namespace      string `json:"namespace"`
			ServiceAccount struct {
				Name string `json:"name"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
		Gardener map[string]json.RawMessage `json:"gardener.cloud"`
	}
	if err := json.Unmarshal(claims, &named); err == nil {
		if name := named.Kubernetes.ServiceAccount.Name; name != "" {
			return "serviceaccount " + named.Kubernetes.Namespace + "/" + name
		}
		var kinds []string
		for kind := range named.Gardener {
			// The identity itself, and the garden that every token names, are not a context.
			if kind != "workloadIdentity" && kind != "garden" {
				kinds = append(kinds, kind)
			}
		}
		if slices.Sort(kinds); len(kinds) > 0 {
			return strings.Join(kinds, ", ")
		}
	}
	switch {
	case asked == nil:
		return "-"
	case tokensecret.ServiceAccountContext(asked):
		return "none: identity and workload cluster are not one"
	default:
		return "none, though the Secret requests " + asked.Kind + " " + asked.Name
	}
}

// WaitsForToken reports whether a pod is held back until its tokens exist.
func WaitsForToken(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == v1alpha1.GateToken })
}

// happened is when an Event was seen last.
func happened(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.CreationTimestamp.Time
	}
}
