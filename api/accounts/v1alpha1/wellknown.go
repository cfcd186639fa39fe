package v1alpha1

// Labels and annotations about profiles.
const (
	// LabelNamespaceProfiles, with the value NamespaceEnabled, has the profiles of a namespace applied to its pods.
	LabelNamespaceProfiles = "identity.credence.dev/profiles"
	// NamespaceEnabled is the value of LabelNamespaceProfiles.
	NamespaceEnabled = "enabled"
	// AnnotationFilledIn, on a pod, has the paths of the fields that its profile has filled in, separated by commas. The webhook writes it, so that
	// the pod can be compared with what its author wrote.
	AnnotationFilledIn = "accounts.credence.dev/filled-in"
)

const (
	// LabelGuardedBy, on a profile, has the value GuardedByWebhook where the policy credence-profile-pods leaves it to the webhook.
	LabelGuardedBy   = "accounts.credence.dev/guarded-by"
	GuardedByWebhook = "webhook"
	// PolicyProfiles is how many profiles of a namespace the policy is evaluated with at most, for each of its pods.
	PolicyProfiles = 20
)
