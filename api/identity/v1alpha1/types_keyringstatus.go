package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of a KeyRing's conditions.
const (
	// ConditionReady is True while a key of every algorithm signs.
	ConditionReady = "Ready"
	// ConditionRotating is False if a rotation that is due can't take place; the reason names the cause.
	ConditionRotating = "Rotating"
	// ConditionWithdrawn is True if the published documents have no key that was revoked, False if they have one, and Unknown
	// if they could not be looked at.
	ConditionWithdrawn = "Withdrawn"
)

// KeyRingStatus is what the keys of a ring are, and what happens to them next. Times are those of the key controller.
type KeyRingStatus struct {
	// observedGeneration is the generation of the spec that the status takes into account.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// issuer is the iss claim of the tokens that the keys sign.
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// revision is that of the stored ring. It grows with each change of the ring, and never becomes smaller.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// settings are those by which keys change.
	// +optional
	Settings *KeyRingSettings `json:"settings,omitempty"`
	// keys are those that are published, in the order in which they are.
	// +optional
	// +listType=map
	// +listMapKey=id
	Keys []KeyStatus `json:"keys,omitempty"`
	// next are the changes to come, the earliest first.
	// +optional
	// +listType=atomic
	Next []PlannedChange `json:"next,omitempty"`
	// nextChange is when the published documents change next; absent if that is not known. While it is past, a change is
	// overdue.
	// +optional
	NextChange *metav1.Time `json:"nextChange,omitempty"`
	// signing is a short text for tables: the keys that sign.
	// +optional
	Signing string `json:"signing,omitempty"`
	// requests are the requested rotations that wait for their spare.
	// +optional
	// +listType=atomic
	Requests []RequestedRotation `json:"requests,omitempty"`
	// revoked are the last thousand keys that were revoked.
	// +optional
	// +listType=atomic
	Revoked []RevokedKey `json:"revoked,omitempty"`
	// history is what happened last, oldest first.
	// +optional
	// +listType=atomic
	History []KeyEvent `json:"history,omitempty"`
	// documents is what the published documents have been seen to be.
	// +optional
	Documents *PublishedDocuments `json:"documents,omitempty"`
	// relyingParties are those of the spec, with what they lack.
	// +optional
	// +listType=map
	// +listMapKey=name
	RelyingParties []RelyingPartyStatus `json:"relyingParties,omitempty"`
	// conditions are Ready, Rotating and Withdrawn.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KeyRingSettings say when keys change. They are flags of the key controller.
type KeyRingSettings struct {
	// rotationPeriod is how long a key signs.
	RotationPeriod metav1.Duration `json:"rotationPeriod"`
	// publishPeriod is for how long relying parties may not have noticed a new key.
	PublishPeriod metav1.Duration `json:"publishPeriod"`
	// maxAge bounds how long relying parties may keep the documents.
	MaxAge metav1.Duration `json:"maxAge"`
	// maxTokenLifetime is the longest lifetime of a token.
	MaxTokenLifetime metav1.Duration `json:"maxTokenLifetime"`
	// leeway is how long after its expiry relying parties may accept a token.
	Leeway metav1.Duration `json:"leeway"`
	// staleness is how late a replica may learn of a change.
	Staleness metav1.Duration `json:"staleness"`
	// clockSkew is how wrong a clock may be.
	ClockSkew metav1.Duration `json:"clockSkew"`
}

// KeyStatus is one published key.
type KeyStatus struct {
	// id is the kid of every token that the key signs.
	ID string `json:"id"`
	// algorithm is RS256 or ES256.
	Algorithm string `json:"algorithm"`
	// state is spare (published, has never signed), active (signs), or retiring (published, signs no more).
	State string `json:"state"`
	// publishedAt is since when the key is known to be published.
	// +optional
	PublishedAt *metav1.Time `json:"publishedAt,omitempty"`
	// readyAt is when a spare may sign without a relying party refusing its tokens.
	// +optional
	ReadyAt *metav1.Time `json:"readyAt,omitempty"`
	// signsSince is when the key began to sign.
	// +optional
	SignsSince *metav1.Time `json:"signsSince,omitempty"`
	// retiredAt is when the key ceased to sign.
	// +optional
	RetiredAt *metav1.Time `json:"retiredAt,omitempty"`
	// lastExpiry is not before the expiry of any token that a retiring key has signed, or a spare in a ring of keys that was lost.
	// +optional
	LastExpiry *metav1.Time `json:"lastExpiry,omitempty"`
	// removableAt is when a retiring key is published no more.
	// +optional
	RemovableAt *metav1.Time `json:"removableAt,omitempty"`
}

// PlannedChange is something that will be done.
type PlannedChange struct {
	// change is Confirm, Extend, Remove, Activate or Rotate.
	Change string `json:"change"`
	// algorithm is that of the key.
	Algorithm string `json:"algorithm"`
	// key is the key that changes; for Activate and Rotate the one that signs afterwards.
	Key string `json:"key"`
	// time is when it may be done.
	Time metav1.Time `json:"time"`
	// awaits names who must know the key before it is done.
	// +optional
	// +listType=atomic
	Awaits []string `json:"awaits,omitempty"`
}

// RequestedRotation is a rotation that a user requested.
type RequestedRotation struct {
	// algorithm is that of the key.
	Algorithm string `json:"algorithm"`
	// time is when it was requested.
	Time metav1.Time `json:"time"`
	// by is the user who asked.
	By string `json:"by"`
	// reason is why.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// RevokedKey is a key that was revoked.
type RevokedKey struct {
	// id is the kid of the tokens that the key has signed.
	ID string `json:"id"`
	// algorithm is that of the key.
	Algorithm string `json:"algorithm"`
	// time is when it was revoked.
	Time metav1.Time `json:"time"`
	// lastExpiry is not before the expiry of any token that the issuer has signed with the key. A thief of the key
	// is not bound by that.
	// +optional
	LastExpiry *metav1.Time `json:"lastExpiry,omitempty"`
	// by is the user who revoked it.
	By string `json:"by"`
	// reason is why.
	Reason string `json:"reason"`
}

// KeyEvent is one thing that happened to one key.
type KeyEvent struct {
	// time is that of the decision.
	Time metav1.Time `json:"time"`
	// event is published, requested, activated, retired, removed or revoked.
	Event string `json:"event"`
	// algorithm is that of the key.
	Algorithm string `json:"algorithm"`
	// key is the key that it happened to.
	Key string `json:"key"`
	// acceptRefusals is set if the key was activated before every relying party could know it, because an admin chose so.
	// +optional
	AcceptRefusals bool `json:"acceptRefusals,omitempty"`
	// by is a user, or controller for what happens because it is due.
	By string `json:"by"`
	// reason is why.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// PublishedDocuments is what the published documents have been seen to be.
type PublishedDocuments struct {
	// from is where they were read.
	From string `json:"from"`
	// keys are the IDs of the keys that they were last seen to hold.
	// +optional
	// +listType=set
	Keys []string `json:"keys,omitempty"`
	// message is why they could not be read, if so.
	// +optional
	Message string `json:"message,omitempty"`
}

// RelyingPartyStatus lists what a relying party with a copy of the keys lacks.
type RelyingPartyStatus struct {
	// name is that of the spec.
	Name string `json:"name"`
	// missingKeys are the published keys that it has not been given.
	// +optional
	// +listType=set
	MissingKeys []string `json:"missingKeys,omitempty"`
}
