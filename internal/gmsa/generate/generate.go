// Package generate writes GMSACredentialSpecs, the rights to use them, and the init container that tests them, as YAML. In
// go facts of a domain, as an administrator knows them; out comes text to apply. It validates nothing (package lint does) and
// makes no requests. Nothing that it writes holds a secret.
package generate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/windows/v1"
)

// Facts are what a credential spec is made of.
type Facts struct {
	// Account is the name of the gMSA; a $ at its end does not count.
	Account string
	// DNSName and NetBIOSName are those of the account's domain.
	DNSName, NetBIOSName string
	// Forest is the DNS name of the forest. Empty: the domain's own.
	Forest string
	// SID and GUID are those of the domain, not of the account.
	SID, GUID string
	// Additional are further accounts that containers may use. Scope is the DNS name of the domain of each.
	Additional []v1.GroupManagedServiceAccount
	// Plugin is for nodes that are not joined to the domain; nil: they are.
	Plugin *Plugin
}

// Plugin is how a node that is not joined to the domain gets an account that may read the password.
type Plugin struct {
	// GUID of the plugin's COM class, with or without braces.
	GUID string
	// Input is for the plugin to read.
	Input string
}

// Spec returns the credential spec of facts. The account is listed twice, because programs look it up by either name of the domain.
func Spec(facts Facts) v1.CredentialSpec {
	account := strings.TrimSuffix(facts.Account, "$")
	forest := cmp.Or(facts.Forest, facts.DNSName)
	accounts := []v1.GroupManagedServiceAccount{{Name: account, Scope: facts.DNSName}, {Name: account, Scope: facts.NetBIOSName}}
	for _, further := range facts.Additional {
		accounts = append(accounts, v1.GroupManagedServiceAccount{Name: strings.TrimSuffix(further.Name, "$"), Scope: further.Scope})
	}
	config := &v1.ActiveDirectoryConfig{GroupManagedServiceAccounts: accounts}
	if plugin := facts.Plugin; plugin != nil {
		config.HostAccountConfig = &v1.HostAccountConfig{
			PortableCcgVersion: "1",
			PluginGUID:         "{" + bare(plugin.GUID) + "}",
			PluginInput:        plugin.Input,
		}
	}
	return v1.CredentialSpec{
		CmsPlugins:            []string{"ActiveDirectory"},
		ActiveDirectoryConfig: config,
		DomainJoinConfig: &v1.DomainJoinConfig{
			DnsName: facts.DNSName, DnsTreeName: forest, NetBiosName: facts.NetBIOSName,
			Guid: bare(facts.GUID), Sid: facts.SID, MachineAccountName: account,
		},
	}
}

// bare is a GUID without braces.
func bare(guid string) string {
	return strings.TrimSuffix(strings.TrimPrefix(guid, "{"), "}")
}

// ObjectName is the default name for the object of an account: in lower case, with - in place of characters that object names
// cannot have.
func ObjectName(account string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.':
			return r
		}
		return '-'
	}, strings.TrimSuffix(account, "$"))
	return strings.Trim(name, "-.")
}

// Object returns the GMSACredentialSpec with a name and a credential spec, which is a JSON object, as YAML.
func Object(name string, credspec []byte) (string, error) {
	var spec map[string]any
	if err := json.Unmarshal(credspec, &spec); err != nil {
		return "", fmt.Errorf("read the credential spec: %w", err)
	}
	return document(
		[2]any{"apiVersion", v1.SchemeGroupVersion.String()}, [2]any{"kind", "GMSACredentialSpec"},
		[2]any{"metadata", map[string]any{"name": name}}, [2]any{"credspec", spec},
	)
}

// ServiceAccount is one that may use a GMSACredentialSpec.
type ServiceAccount struct{ Namespace, Name string }

// Access returns a ClusterRole that lets use the GMSACredentialSpec name, that one alone and no more than that, and for each
// namespace a RoleBinding of its service accounts; each is a YAML document, in the order of the accounts.
func Access(name string, accounts []ServiceAccount) ([]string, error) {
	role := name + "-gmsa-user"
	text, err := document(
		[2]any{"apiVersion", rbacv1.SchemeGroupVersion.String()}, [2]any{"kind", "ClusterRole"},
		[2]any{"metadata", map[string]any{"name": role}},
		[2]any{"rules", []rbacv1.PolicyRule{{
			APIGroups: []string{v1.GroupName}, Resources: []string{v1.ResourceName}, ResourceNames: []string{name}, Verbs: []string{"use"},
		}}},
	)
	if err != nil {
		return nil, err
	}
	documents := []string{text}
	subjects := map[string][]rbacv1.Subject{}
	var namespaces []string
	for _, account := range accounts {
		subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
		of, seen := subjects[account.Namespace]
		if !seen {
			namespaces = append(namespaces, account.Namespace)
		}
		if !slices.Contains(of, subject) {
			subjects[account.Namespace] = append(of, subject)
		}
	}
	for _, namespace := range namespaces {
		text, err := document(
			[2]any{"apiVersion", rbacv1.SchemeGroupVersion.String()}, [2]any{"kind", "RoleBinding"},
			[2]any{"metadata", metav1.ObjectMeta{Name: "use-" + name + "-gmsa", Namespace: namespace}},
			[2]any{"subjects", subjects[namespace]},
			[2]any{"roleRef", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}},
		)
		if err != nil {
			return nil, err
		}
		documents = append(documents, text)
	}
	return documents, nil
}

// document is an object as YAML, with its keys in this order.
func document(pairs ...[2]any) (string, error) {
	var text strings.Builder
	for _, pair := range pairs {
		part, err := yaml.Marshal(map[string]any{pair[0].(string): pair[1]})
		if err != nil {
			return "", fmt.Errorf("write %s: %w", pair[0], err)
		}
		text.Write(part)
	}
	return text.String(), nil
}
