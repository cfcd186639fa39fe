package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GMSACredentialSpec is the credential spec of a group managed service account of Active Directory, under a name that pods of
// any namespace can refer to, if their service account may use it. It is not namespaced.
type GMSACredentialSpec struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// credspec is what a container runtime is given. Objects without one exist, and can not be used.
	// +optional
	CredSpec *CredentialSpec `json:"credspec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GMSACredentialSpecList is a list of GMSACredentialSpecs.
type GMSACredentialSpecList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GMSACredentialSpec `json:"items"`
}

// CredentialSpec is a credential spec as Windows reads it: names of its fields are exact, and all values are text.
type CredentialSpec struct {
	// +optional
	ActiveDirectoryConfig *ActiveDirectoryConfig `json:"ActiveDirectoryConfig,omitempty"`
	// CmsPlugins must have ActiveDirectory among it.
	// +optional
	CmsPlugins []string `json:"CmsPlugins,omitempty"`
	// +optional
	DomainJoinConfig *DomainJoinConfig `json:"DomainJoinConfig,omitempty"`
}

// ActiveDirectoryConfig names the accounts of a container.
type ActiveDirectoryConfig struct {
	// GroupManagedServiceAccounts has an entry for each account and scope.
	// +optional
	GroupManagedServiceAccounts []GroupManagedServiceAccount `json:"GroupManagedServiceAccounts,omitempty"`
	// HostAccountConfig is for nodes that are not joined to the domain: how they get an account that may read the password.
	// +optional
	HostAccountConfig *HostAccountConfig `json:"HostAccountConfig,omitempty"`
}

// GroupManagedServiceAccount is an account in a scope.
type GroupManagedServiceAccount struct {
	// Name of the account, without the $ at its end.
	// +optional
	Name string `json:"Name,omitempty"`
	// Scope is the DNS name or the NetBIOS name of the account's domain.
	// +optional
	Scope string `json:"Scope,omitempty"`
}

// HostAccountConfig names a plugin of the Container Credential Guard.
type HostAccountConfig struct {
	// PluginGUID is the plugin's COM class, in braces.
	// +optional
	PluginGUID string `json:"PluginGUID,omitempty"`
	// PluginInput is for the plugin to read. It names a secret, and must not hold one.
	// +optional
	PluginInput string `json:"PluginInput,omitempty"`
	// PortableCcgVersion is "1".
	// +optional
	PortableCcgVersion string `json:"PortableCcgVersion,omitempty"`
}

// DomainJoinConfig is the domain of the accounts.
type DomainJoinConfig struct {
	// DnsName of the domain.
	// +optional
	DnsName string `json:"DnsName,omitempty"`
	// DnsTreeName is the DNS name of the forest's root.
	// +optional
	DnsTreeName string `json:"DnsTreeName,omitempty"`
	// Guid of the domain object.
	// +optional
	Guid string `json:"Guid,omitempty"`
	// MachineAccountName is the name of the account, without the $ at its end.
	// +optional
	MachineAccountName string `json:"MachineAccountName,omitempty"`
	// NetBiosName of the domain.
	// +optional
	NetBiosName string `json:"NetBiosName,omitempty"`
	// Sid of the domain, not of the account.
	// +optional
	Sid string `json:"Sid,omitempty"`
}
