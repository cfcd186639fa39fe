package v1alpha1

// Labels and annotations of Secrets that carry tokens of workload identities (GEP-26, "Distribution of Workload Identity
// Tokens"), and the keys of their data.
const (
	// LabelPurpose, with the value PurposeTokenRequestor, makes a Secret one that is kept filled with a token.
	LabelPurpose = "authentication.gardener.cloud/purpose"
	// PurposeTokenRequestor is the value of LabelPurpose.
	PurposeTokenRequestor = "workload-identity-token-requestor"
	// LabelProvider names the type of target system, for webhooks of extensions to select by.
	LabelProvider = "workloadidentity.authentication.gardener.cloud/provider"

	// AnnotationName and AnnotationNamespace name the WorkloadIdentity whose tokens the Secret carries.
	AnnotationName      = "workloadidentity.authentication.gardener.cloud/name"
	AnnotationNamespace = "workloadidentity.authentication.gardener.cloud/namespace"
	// AnnotationContextObject, if present, is the ContextObject of the tokens as JSON.
	AnnotationContextObject = "workloadidentity.authentication.gardener.cloud/context-object"
	// AnnotationRenewTimestamp is when the token is renewed: RFC 3339, UTC. The agent writes it.
	AnnotationRenewTimestamp = "workloadidentity.authentication.gardener.cloud/token-renew-timestamp"
	// AnnotationInputs is a digest of the token and of what it was made from. The agent writes it.
	AnnotationInputs = "workloadidentity.authentication.gardener.cloud/token-inputs"
	// AnnotationOrphaned is since when the identity does not exist any more: RFC 3339, UTC. The agent writes it.
	AnnotationOrphaned = "workloadidentity.authentication.gardener.cloud/identity-missing-since"

	// AnnotationReleased is since when the service account of a Secret does not name its identity any more, while pods mount the Secret
	// or may in a moment: RFC 3339, UTC. The agent writes it.
	AnnotationReleased = "workloadidentity.authentication.gardener.cloud/released-since"

	// AnnotationRequester and those below it hold the user who has a Secret filled, as the API server authenticated them: name, uid,
	// groups (one in each line) and extra values (key=value in each line, several values of a key separated by tabs). The webhook
	// writes them, and a policy compares them with the request.
	AnnotationRequester       = "workloadidentity.authentication.gardener.cloud/requested-by"
	AnnotationRequesterUID    = "workloadidentity.authentication.gardener.cloud/requested-by-uid"
	AnnotationRequesterGroups = "workloadidentity.authentication.gardener.cloud/requested-by-groups"
	AnnotationRequesterExtra  = "workloadidentity.authentication.gardener.cloud/requested-by-extra"

	// AnnotationNewerFields is on objects in answers of an API server that is older than the one which stored them: the fields that it does not
	// know. It is not stored.
	AnnotationNewerFields = "identity.credence.dev/newer-fields"
	// AnnotationOperation, with the value OperationRenewToken, requests a new token at once, on a Secret that carries one or
	// on the resource that refers to the identity. It is removed once the new token is written.
	AnnotationOperation = "gardener.cloud/operation"
	// OperationRenewToken is the value of AnnotationOperation.
	OperationRenewToken = "renew-workload-identity-token"

	// SecretToken is the key of the token; SecretConfig that of the identity's providerConfig, as YAML.
	SecretToken  = "token"
	SecretConfig = "config"
)

// LabelExcludedFromBackup, with the value "true", has Velero leave a Secret out of its backups: the agent labels the Secrets that it makes.
const LabelExcludedFromBackup = "velero.io/exclude-from-backup"

// FinalizerBindings keeps a WorkloadIdentity that is being deleted until no CredentialsBinding refers to it.
const FinalizerBindings = "identity.credence.dev/credentials-bindings"

// FinalizerConsumers keeps a CredentialsBinding that is being deleted until no consumer of another namespace uses it.
const FinalizerConsumers = "identity.credence.dev/consumers"

// AnnotationBinding, on a Secret that carries tokens, names a CredentialsBinding in place of an identity: it is in the namespace of
// AnnotationNamespace. On a TokenRequest it is the one by which the token is requested, as namespace/name: it has to refer to the identity,
// which then may be one that is being deleted.
const AnnotationBinding = "workloadidentity.authentication.gardener.cloud/binding"

// The consent of a Secret with static credentials: a user who may get the Secret gives it, which a policy reviews.
const (
	// LabelCopied, with the value CopiedEnabled, lets the data of a Secret be copied for CredentialsBindings that refer to it.
	LabelCopied = "identity.credence.dev/credentials-copied"
	// CopiedEnabled is the value of LabelCopied.
	CopiedEnabled = "enabled"
	// AnnotationCopiedFor lists the namespaces of these bindings, separated by commas.
	AnnotationCopiedFor = "identity.credence.dev/credentials-copied-for"
)

// AnnotationCopiedKeys, on a Secret that names a CredentialsBinding, is which of its data was copied, and for which binding:
// NAMESPACE/NAME:KEY,KEY. The agent writes it.
const AnnotationCopiedKeys = "workloadidentity.authentication.gardener.cloud/copied-keys"

// Labels and annotations by which pods get identities through their service account.
const (
	// LabelNamespaceIdentities, with the value NamespaceEnabled, lets service accounts of a namespace give their pods identities.
	LabelNamespaceIdentities = "identity.credence.dev/workload-identities"
	// LabelNamespaceContexts, with the value NamespaceEnabled, lets the agent make Secrets in a namespace that context objects of the
	// identity cluster need.
	LabelNamespaceContexts = "identity.credence.dev/context-delivery"
	// LabelNamespaceQuotas, with the value NamespaceEnabled, has writes of context objects of a namespace reviewed by Quotas. CredentialsBindings
	// without it list none.
	LabelNamespaceQuotas = "identity.credence.dev/quotas"
	// LabelNamespaceDelivery is how tokens come to the pods of a namespace: DeliverySecret or DeliveryCSI. Without it, as the installation has it.
	LabelNamespaceDelivery = "identity.credence.dev/delivery"
	// DeliverySecret is by Secrets, which the agent fills.
	DeliverySecret = "secret"
	// DeliveryCSI is by volumes of CSIDriver, which are not stored.
	DeliveryCSI = "csi"
	// NamespaceEnabled is the value of LabelNamespaceIdentities, LabelNamespaceContexts and LabelNamespaceQuotas.
	NamespaceEnabled = "enabled"
	// AnnotationContextDelivery, on a Secret that the agent has made for a context object, names the ContextDelivery; AnnotationContextRenewal
	// is the last request for new tokens of that object which the Secret has followed.
	AnnotationContextDelivery = "identity.credence.dev/context-delivery"
	AnnotationContextRenewal  = "identity.credence.dev/context-renewal"
	// AnnotationAccountIdentities, on a service account, lists the identities of its namespace that its pods get: names,
	// separated by commas.
	AnnotationAccountIdentities = "identity.credence.dev/workload-identities"
	// AnnotationImagePullIdentity, on a service account, names the identity of its namespace by which images of its pods are pulled.
	AnnotationImagePullIdentity = "identity.credence.dev/image-pull-identity"
	// AnnotationRegistries, on a Secret of type kubernetes.io/dockerconfigjson that carries tokens, lists the registries whose passwords
	// credence-registry keeps in it: images of its configuration, separated by commas.
	AnnotationRegistries = "identity.credence.dev/registries"
	// AnnotationRegistriesRenewTimestamp is when the passwords are renewed at the latest (RFC 3339, UTC), AnnotationRegistriesInputs a digest of
	// them and of what they were made from. credence-registry writes both.
	AnnotationRegistriesRenewTimestamp = "identity.credence.dev/registries-renew-timestamp"
	AnnotationRegistriesInputs         = "identity.credence.dev/registries-inputs"
	// AnnotationSkipContainers, on a pod, lists the containers that get no identity: names, separated by commas.
	AnnotationSkipContainers = "identity.credence.dev/skip-containers"
	// AnnotationMountPath, on a pod, is the folder below which each identity has a folder of its name; without it,
	// /var/run/secrets/workload-identity.
	AnnotationMountPath = "identity.credence.dev/mount-path"
	// AnnotationReviewPathBefore and AnnotationReviewPathSince, on a webhook configuration whose paths are secret, are the secret of
	// before, and since when there is another one (RFC 3339).
	AnnotationReviewPathBefore = "identity.credence.dev/review-path-before"
	AnnotationReviewPathSince  = "identity.credence.dev/review-path-since"
	// GateToken is the scheduling gate of a pod whose tokens do not exist yet.
	GateToken = "identity.credence.dev/token"
	// ConditionTokenReady is the condition of a pod that has waited for its tokens: False while it does, with the reason, then True.
	ConditionTokenReady = "identity.credence.dev/TokenReady"
)

// Deliveries are the ways in which tokens come to pods.
func Deliveries() []string { return []string{DeliverySecret, DeliveryCSI} }

// RuntimeGuard is among the build metadata of the container runtime's version that a Node shows (containerd://2.1.4+credence-guard) if a guard of
// static pods is between its kubelet and the runtime.
const RuntimeGuard = "credence-guard"

// Volumes with tokens of identities that are not stored in Secrets.
const (
	// CSIDriver is the name of the driver of ephemeral volumes with tokens.
	CSIDriver = "csi.identity.credence.dev"
	// AudienceAgent is the audience of service-account tokens of pods that the agent of a workload cluster reviews: one that leaks is of no use at
	// the API server.
	AudienceAgent = "agent.identity.credence.dev"
	// VolumeAttributeIdentity names the WorkloadIdentity, in the pod's namespace, whose token a volume has.
	VolumeAttributeIdentity = "workloadIdentity"
	// VolumeAttributeMountPath is the path at which containers mount the volume, for files that have paths in them; without it,
	// /var/run/secrets/workload-identity/ and the identity's name.
	VolumeAttributeMountPath = "mountPath"
	// VolumeAttributeRegistries lists the registries whose passwords a volume has in config.json: images of the node's configuration, separated by commas.
	VolumeAttributeRegistries = "registries"
)
